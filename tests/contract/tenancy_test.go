package contract

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"crier/apps/edge"
	"crier/platform/id"
	"crier/publishing"
)

func TestTenancy_OtherOrganizationsDataIsNotFound(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	owner, other := r.organization(t), r.organization(t)
	theirs := owner.channel(t, "A")
	mine := other.channel(t, "A")
	medium := owner.upload(t, "secret.png", png(t)).want(t, http.StatusCreated).object(t)
	post := owner.create(t, later(theirs.id, part("theirs", medium), m{"content": "reply", "delay": 5}))
	record := owner.get(t, "/posts/"+post).want(t, http.StatusOK)
	full := record.object(t)
	reply := full["posts"].([]any)[0].(m)["value"].([]any)[1].(m)["id"].(string)

	t.Run("ids of others are answered like unknown ids", func(t *testing.T) {
		t.Run("in a path", func(t *testing.T) {
			t.Parallel()
			ids := []string{post, reply, full["group"].(string), theirs.id, medium["id"].(string), id.New[publishing.PostTag]().String(), "not-an-id", strings.Repeat("7", 300), "%00", "%27%20or%201=1", "00000000-0000-0000-0000-000000000000"}
			routes := 0
			for _, route := range edge.Routes() {
				if !strings.Contains(route.Path, "public/v1") || !strings.Contains(route.Path, "{") || route.State == edge.Planned {
					continue
				}
				routes++
				status := http.StatusNotFound
				if route.State != edge.Built {
					status = http.StatusNotImplemented
				}
				for _, body := range bodiesFor(route.Method) {
					var same answer
					for j, one := range ids {
						o := other
						o.prefix = ""
						a := o.do(t, route.Method, filled(route.Path, one), body)
						if a.Status != status {
							t.Errorf("%s with %s, body %v: answered %v, want %d", route, one, body, a, status)
						}
						if j > 0 && (a.Body != same.Body || a.Status != same.Status) {
							t.Errorf("%s answers %s with %v and %s with %v, want the same", route, one, a, ids[0], same)
						}
						same = a
					}
				}
			}
			if routes < 8 {
				t.Fatalf("only %d routes have an id in their path", routes)
			}
		})
		t.Run("in a body", func(t *testing.T) {
			t.Parallel()
			unknown := id.New[publishing.PostTag]().String()
			url := medium["url"].(string)
			groups := map[string]struct {
				values []string
				body   func(v string) m
			}{
				"integration":    {[]string{theirs.id, unknown, "not-an-id", post}, func(v string) m { return later(v, part("x")) }},
				"media id":       {[]string{medium["id"].(string), unknown, "not-an-id", theirs.id}, func(v string) m { return later(mine.id, part("x", m{"id": v})) }},
				"plain media id": {[]string{medium["id"].(string), unknown, "not-an-id"}, func(v string) m { return later(mine.id, part("x", v)) }},
				"media path": {[]string{url, base + "/files/" + strings.Repeat("a", 24) + "/secret.png", base + "/files/none/x.png"}, func(v string) m {
					return later(mine.id, part("x", m{"id": "whatever", "path": v}))
				}},
				"media url": {[]string{url, base + "/files/" + strings.Repeat("a", 24) + "/secret.png"}, func(v string) m { return later(mine.id, part("x", m{"url": v})) }},
				"group": {[]string{full["group"].(string), unknown, "not-an-id"}, func(v string) m {
					return request("schedule", tomorrow(), m{"integration": m{"id": mine.id}, "group": v, "value": []m{part("x")}})
				}},
				"first value id": {[]string{post, unknown, "not-an-id", reply}, func(v string) m { return later(mine.id, m{"id": v, "content": "x"}) }},
				"second value id": {[]string{reply, unknown, "not-an-id", post}, func(v string) m {
					return later(mine.id, part("x"), m{"id": v, "content": "y"})
				}},
				"value id of an update": {[]string{post, unknown, "not-an-id"}, func(v string) m {
					return request("update", tomorrow(), entry(mine.id, m{"id": v, "content": "x"}))
				}},
				"draft's media": {[]string{medium["id"].(string), unknown}, func(v string) m {
					return request("draft", tomorrow(), entry(mine.id, part("x", m{"id": v})))
				}},
			}
			for name, g := range groups {
				same := ""
				for i, v := range g.values {
					a := other.do(t, http.MethodPost, "/posts", g.body(v))
					a.refusal(t, http.StatusBadRequest)
					if len(a.object(t)["errors"].([]any)) != 1 {
						t.Errorf("%s: %v", name, a)
					}
					words := strings.ReplaceAll(a.Body, v, "…")
					if i > 0 && words != same {
						t.Errorf("%s answers %s with %s and another with %s, want the same", name, v, words, same)
					}
					same = words
				}
			}
			if n := other.count(t); n != "0" {
				t.Errorf("%s posts were made", n)
			}
		})
		t.Run("in a query", func(t *testing.T) {
			t.Parallel()
			for _, v := range []string{theirs.id, "not-an-id", id.New[publishing.PostTag]().String()} {
				for _, path := range []string{"/posts?page=0&customer=" + v, "/integrations?group=" + v} {
					if a := other.get(t, path).want(t, http.StatusOK); a.Body != "[]\n" && a.Body != "[]" {
						t.Errorf("%s: %v", path, a)
					}
				}
			}
		})
	})
	if a := other.get(t, "/integrations").list(t); len(a) != 1 || a[0]["id"] != mine.id {
		t.Errorf("the channels of the other organization: %v", a)
	}
	if a := owner.get(t, "/posts/"+post); a.Body != record.Body {
		t.Errorf("the owner's post is now %v, before %v", a, record)
	}
}

func TestCreate_OneBadEntryRefusesRequest(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o, other := r.organization(t), r.organization(t)
	good, foreign := o.channel(t, "A"), other.channel(t, "A")
	a := o.do(t, http.MethodPost, "/posts", request("now", time.Now(), entry(good.id, part("fine")), entry(foreign.id, part("x")), entry(good.id, part(strings.Repeat("x", 501)))))
	a.refusal(t, http.StatusBadRequest)
	errors := a.object(t)["errors"].([]any)
	if len(errors) != 2 || o.count(t) != "0" {
		t.Fatalf("%v, %s posts", a, o.count(t))
	}
	if first := errors[0].(m); first["integration"] != foreign.id || first["provider"] != "" || first["name"] != "" {
		t.Errorf("the foreign channel is named: %v", first)
	}
	if second := errors[1].(m); second["provider"] != "sandbox" || second["name"] != good.account {
		t.Errorf("the own channel is not named: %v", second)
	}
}

func filled(path, id string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "{") {
			parts[i] = id
		}
	}
	return strings.Join(parts, "/")
}

// bodiesFor returns bodies for a route. With none of them the answer may depend on the organization of the id.
func bodiesFor(method string) []any {
	if method == http.MethodPut || method == http.MethodPost {
		return []any{m{"status": "draft"}, m{"status": "schedule"}, m{"status": "schedule", "republish": true}, m{"status": "nonsense"}}
	}
	return []any{nil}
}
