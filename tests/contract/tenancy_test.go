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

// estate holds what one organization owns, and a second organization that asks for it.
type estate struct {
	owner, other   org
	theirs, mine   channel // of the owner and of the other organization
	medium         medium
	post           record
	reply, unknown string // the id of the second part; an id that nothing has
}

func TestTenancy_OtherOrganizationsDataIsNotFound(t *testing.T) {
	t.Parallel()
	r := common(t)
	e := estate{owner: r.organization(t), other: r.organization(t), unknown: id.New[publishing.PostTag]().String()}
	e.theirs, e.mine = e.owner.channel(t, "A"), e.other.channel(t, "A")
	e.medium = e.owner.stored(t, "secret.png", png(t))
	reply := m{"content": "reply", "delay": 5}
	e.post = e.owner.post(t, e.owner.create(t, later(e.theirs.id, part("theirs", e.medium), reply)))
	e.reply = e.post.values()[1].ID
	before := e.owner.get(t, "/posts/"+e.post.ID)
	t.Run("ids of other organizations look like unknown ids", func(t *testing.T) {
		t.Run("in a path", e.askInPaths)
		t.Run("in a body", e.askInBodies)
		t.Run("in a query", e.askInQueries)
	})
	if got := e.other.channels(t); len(got) != 1 || got[0].ID != e.mine.id {
		t.Errorf("the other organization has the channels %+v, want only %s", got, e.mine.id)
	}
	if got := e.owner.get(t, "/posts/"+e.post.ID); got.Body != before.Body {
		t.Errorf("the owner's post is %v, want %v as before", got, before)
	}
}

// askInPaths calls each route of the public API with an id in its path.
func (e estate) askInPaths(t *testing.T) {
	t.Parallel()
	ids := []string{
		e.post.ID, e.reply, e.post.Group, e.theirs.id, e.medium.ID, e.unknown, "not-an-id", strings.Repeat("7", 300),
		"%00", "%27%20or%201=1", "00000000-0000-0000-0000-000000000000",
	}
	asker := e.other
	asker.prefix = ""
	routes := 0
	for _, route := range edge.Routes() {
		public := strings.Contains(route.Path, "public/v1") && strings.Contains(route.Path, "{")
		if !public || route.State == edge.Planned {
			continue
		}
		routes++
		status := http.StatusNotFound
		switch {
		case route.State == edge.Missing:
			status = http.StatusNotImplemented
		case strings.HasSuffix(route.Path, "/social/{integration}"): // unknown platforms are invalid
			status = http.StatusBadRequest
		}
		for _, body := range bodiesFor(route) {
			want := asker.do(t, route.Method, filled(route.Path, ids[0]), body)
			if want.Status != status {
				t.Errorf("%s with %s and %v is answered with %v, want %d", route, ids[0], body, want, status)
			}
			for _, id := range ids[1:] {
				got := asker.do(t, route.Method, filled(route.Path, id), body)
				if got.Status != want.Status || got.Body != want.Body {
					t.Errorf("%s with %s and %v is answered with %v, want %v", route, id, body, got, want)
				}
			}
		}
	}
	if routes < 8 {
		t.Fatalf("%d routes have an id in their path, want at least 8", routes)
	}
}

// askInBodies creates posts in the other organization that name what the owner has.
func (e estate) askInBodies(t *testing.T) {
	t.Parallel()
	with := func(parts ...m) m { return later(e.mine.id, parts...) }
	only := func(kind string, p m) m { return request(kind, tomorrow(), entry(e.mine.id, p)) }
	noFile := base + "/files/" + strings.Repeat("a", 24) + "/secret.png"
	for name, v := range map[string]struct {
		ids  []string
		body func(id string) m
	}{
		"integration": {
			ids:  []string{e.theirs.id, e.unknown, "not-an-id", e.post.ID},
			body: func(id string) m { return later(id, part("x")) },
		},
		"media id": {
			ids:  []string{e.medium.ID, e.unknown, "not-an-id", e.theirs.id},
			body: func(id string) m { return with(part("x", m{"id": id})) },
		},
		"plain media id": {
			ids:  []string{e.medium.ID, e.unknown, "not-an-id"},
			body: func(id string) m { return with(part("x", id)) },
		},
		"media path": {
			ids:  []string{e.medium.URL, noFile, base + "/files/none/x.png"},
			body: func(path string) m { return with(part("x", m{"id": "any", "path": path})) },
		},
		"media url": {
			ids:  []string{e.medium.URL, noFile},
			body: func(url string) m { return with(part("x", m{"url": url})) },
		},
		"group of an update": {
			ids:  []string{e.post.Group, e.unknown, "not-an-id"},
			body: func(id string) m { return request("update", tomorrow(), byGroup(e.mine.id, id, part("x"))) },
		},
		"first value id": {
			ids:  []string{e.post.ID, e.unknown, "not-an-id", e.reply},
			body: func(id string) m { return with(m{"id": id, "content": "x"}) },
		},
		"second value id": {
			ids:  []string{e.reply, e.unknown, "not-an-id", e.post.ID},
			body: func(id string) m { return with(part("x"), m{"id": id, "content": "y"}) },
		},
		"value id of an update": {
			ids:  []string{e.post.ID, e.unknown, "not-an-id"},
			body: func(id string) m { return only("update", m{"id": id, "content": "x"}) },
		},
		"draft's media": {
			ids:  []string{e.medium.ID, e.unknown},
			body: func(id string) m { return only("draft", part("x", m{"id": id})) },
		},
	} {
		want := e.refusalWithout(t, v.body(v.ids[0]), v.ids[0])
		for _, id := range v.ids[1:] {
			if got := e.refusalWithout(t, v.body(id), id); got != want {
				t.Errorf("%s: %s is refused with %s, want %s", name, id, got, want)
			}
		}
	}
	e.other.wantCount(t, 0)
}

// refusalWithout sends a body that must be refused for one channel, and returns the response with
// the id removed.
func (e estate) refusalWithout(t *testing.T, body m, id string) string {
	t.Helper()
	a := e.other.do(t, http.MethodPost, "/posts", body)
	a.refusal(t, http.StatusBadRequest)
	if n := len(read[refused](t, a).Errors); n != 1 {
		t.Errorf("the refusal names %d channels, want 1: %v", n, a)
	}
	return strings.ReplaceAll(a.Body, id, "…")
}

// askInQueries filters lists by customers that the other organization does not have.
func (e estate) askInQueries(t *testing.T) {
	t.Parallel()
	for _, id := range []string{e.theirs.id, "not-an-id", e.unknown} {
		for _, path := range []string{"/posts?page=0&customer=" + id, "/integrations?group=" + id} {
			if a := e.other.get(t, path).want(t, http.StatusOK); strings.TrimSpace(a.Body) != "[]" {
				t.Errorf("%s is answered with %v, want []", path, a)
			}
		}
	}
}

func TestCreate_OneBadEntryRefusesRequest(t *testing.T) {
	t.Parallel()
	r := common(t)
	o, other := r.organization(t), r.organization(t)
	good, foreign := o.channel(t, "A"), other.channel(t, "A")
	a := o.do(t, http.MethodPost, "/posts", request("now", time.Now(), entry(good.id, part("fine")),
		entry(foreign.id, part("x")), entry(good.id, part(strings.Repeat("x", 501)))))
	a.refusal(t, http.StatusBadRequest)
	errors := read[refused](t, a).Errors
	if len(errors) != 2 {
		t.Fatalf("the refusal names %+v, want 2 channels", errors)
	}
	if got := errors[0]; got.Integration != foreign.id || got.Provider != "" || got.Name != "" {
		t.Errorf("the foreign channel is %+v, want only the id %s", got, foreign.id)
	}
	if got := errors[1]; got.Provider != "sandbox" || got.Name != good.account {
		t.Errorf("the own channel is %+v, want sandbox and %s", got, good.account)
	}
	o.wantCount(t, 0)
}

// filled returns a path with id as the value of each parameter.
func filled(path, id string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "{") {
			parts[i] = id
		}
	}
	return strings.Join(parts, "/")
}

// validBodies holds bodies for routes that refuse invalid bodies before they look at the id, keyed
// by the end of the path.
var validBodies = map[string]m{
	"/queue-plan": {"time": []m{{"time": 560}}}, "/settings": {"settings": m{}}, "/tags/{id}": {"name": "mine", "color": "#123456"},
}

// bodiesFor returns bodies for a route. With none of them may the response depend on the
// organization that owns the id.
func bodiesFor(route edge.Route) []any {
	for end, body := range validBodies {
		if route.Method == http.MethodPut && strings.HasSuffix(route.Path, end) {
			return []any{body}
		}
	}
	if route.Method == http.MethodPut || route.Method == http.MethodPost {
		return []any{
			m{"status": "draft"}, m{"status": "schedule"}, m{"status": "schedule", "republish": true},
			m{"status": "nonsense"},
		}
	}
	return []any{nil}
}
