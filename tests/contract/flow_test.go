package contract

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func values(full m) (out []m) {
	for _, v := range full["posts"].([]any)[0].(m)["value"].([]any) {
		out = append(out, v.(m))
	}
	return out
}

func contents(full m) string {
	var out []string
	for _, v := range values(full) {
		out = append(out, v["content"].(string))
	}
	return strings.Join(out, " | ")
}

func happened(full m) (out []string) {
	for _, e := range full["timeline"].([]any) {
		out = append(out, e.(m)["event"].(string))
	}
	return out
}

func TestPosts(t *testing.T) {
	t.Parallel()
	r := start(t, nil)

	t.Run("now is published at once, with its whole record", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		medium := o.upload(t, "cat.png", png(t)).want(t, http.StatusCreated).object(t)
		body := now(c.id, part("<p>Hello <strong>you</strong></p>", m{"id": medium["id"], "alt": "A cat"}))
		made := o.do(t, http.MethodPost, "/posts", body).want(t, http.StatusCreated).list(t)
		keys(t, made[0], "postId", "integration")
		if len(made) != 1 || made[0]["integration"] != c.id {
			t.Fatalf("%v", made)
		}
		full := o.reaches(t, made[0]["postId"].(string), "PUBLISHED")
		fullShape(t, full)
		out := r.published(t, c)
		if len(out) != 1 || out[0].Text != "Hello you" || len(out[0].Media) != 1 || out[0].Media[0].Alt != "A cat" {
			t.Fatalf("%v", out)
		}
		if full["releaseId"] != out[0].ID || !strings.Contains(full["releaseURL"].(string), out[0].ID) || full["content"] != "<p>Hello <strong>you</strong></p>" {
			t.Fatalf("%v", full)
		}
		if got := happened(full); !slices.Equal(got, []string{"written", "claimed", "confirmed"}) {
			t.Fatalf("timeline %v", got)
		}
	})
	t.Run("one entry per channel, in order, each with its own content", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		a, c, e := o.channel(t, "A"), o.channel(t, "C"), o.channel(t, "E")
		made := o.do(t, http.MethodPost, "/posts", request("now", time.Now(), entry(a.id, part("for a")), entry(c.id, part("for c")), entry(e.id, part("for e")))).want(t, 201).list(t)
		for i, ch := range []channel{a, c, e} {
			if made[i]["integration"] != ch.id {
				t.Fatalf("%v", made)
			}
			o.reaches(t, made[i]["postId"].(string), "PUBLISHED")
		}
		if r.texts(t, a) != "for a" || r.texts(t, c) != "for c" || r.texts(t, e) != "for e" {
			t.Fatal("mixed up")
		}
	})
	t.Run("schedule goes out at its time", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		due := time.Now().Add(3 * time.Second).Truncate(time.Second)
		id := o.create(t, request("schedule", due, entry(c.id, part("in time"))))
		if full := o.get(t, "/posts/"+id).object(t); full["state"] != "QUEUE" || full["date"] != due.UTC().Format("2006-01-02T15:04:05.000Z") {
			t.Fatalf("%v", full)
		}
		o.reaches(t, id, "PUBLISHED")
		if at := r.published(t, c)[0].At; at.Before(due) {
			t.Fatalf("published at %v, due %v", at, due)
		}
	})
	t.Run("a date in the past goes out at once", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		o.reaches(t, o.create(t, request("schedule", time.Now().Add(-time.Hour), entry(c.id, part("late")))), "PUBLISHED")
	})
	t.Run("a draft stays until it is scheduled", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, request("draft", time.Now().Add(-time.Minute), entry(c.id, part("first a draft"))))
		if full := o.get(t, "/posts/"+id).object(t); full["state"] != "DRAFT" || full["status"] != "draft" {
			t.Fatalf("%v", full)
		}
		a := o.do(t, http.MethodPut, "/posts/"+id+"/status", m{"status": "schedule"}).want(t, 200).object(t)
		if len(a) != 2 || a["id"] != id || a["state"] != "QUEUE" {
			t.Fatalf("%v", a)
		}
		o.reaches(t, id, "PUBLISHED")
		if r.texts(t, c) != "first a draft" {
			t.Fatal(r.texts(t, c))
		}
	})
	t.Run("a draft that breaks the platform's rules cannot be scheduled", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		id := o.create(t, request("draft", tomorrow(), entry(o.channel(t, "A").id, part(strings.Repeat("x", 501)))))
		msg := o.do(t, http.MethodPut, "/posts/"+id+"/status", m{"status": "schedule"}).refusal(t, 400)
		if !strings.Contains(msg, "501") || o.get(t, "/posts/"+id).object(t)["state"] != "DRAFT" {
			t.Fatal(msg)
		}
	})
	t.Run("a queued post is a draft again and back", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		id := o.create(t, later(o.channel(t, "A").id, part("to and fro")))
		for _, step := range [][2]string{{"draft", "DRAFT"}, {"draft", "DRAFT"}, {"schedule", "QUEUE"}, {"schedule", "QUEUE"}} {
			if a := o.do(t, http.MethodPut, "/posts/"+id+"/status", m{"status": step[0]}).want(t, 200).object(t); a["state"] != step[1] {
				t.Fatalf("%v", a)
			}
			if full := o.get(t, "/posts/"+id).object(t); full["state"] != step[1] {
				t.Fatalf("%v", full)
			}
		}
	})
	t.Run("status guards", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, now(c.id, part("once")))
		o.reaches(t, id, "PUBLISHED")
		for _, word := range []string{"draft", "schedule"} {
			o.do(t, http.MethodPut, "/posts/"+id+"/status", m{"status": word}).refusal(t, 409)
		}
		for _, body := range []any{m{"status": "DRAFT"}, m{"status": ""}, m{"status": nil}, m{}, m{"status": 1}, "[]", "null", "{", "", m{"status": "schedule", "republish": "x"}} {
			o.do(t, http.MethodPut, "/posts/"+id+"/status", body).refusal(t, 400)
		}
		o.do(t, http.MethodPut, "/posts/"+id+"/status", m{"status": "schedule", "republish": true}).want(t, 200)
		eventually(t, "a second post", func() bool { return len(r.published(t, c)) == 2 }, func() any { return r.texts(t, c) })
		o.reaches(t, id, "PUBLISHED")
	})
	t.Run("an edit by group replaces the post", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, later(c.id, part("old"), part("old reply")))
		group := o.get(t, "/posts/"+id).object(t)["group"]
		body := request("now", time.Now(), m{"integration": m{"id": c.id}, "group": group, "value": []m{part("new")}})
		if again := o.create(t, body); again != id {
			t.Fatalf("%s became %s", id, again)
		}
		full := o.reaches(t, id, "PUBLISHED")
		if full["group"] != group || r.texts(t, c) != "new" || o.count(t) != "1" {
			t.Fatalf("%v, %s", full, r.texts(t, c))
		}
	})
	t.Run("an edit by the parts' ids keeps them", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, later(c.id, part("one"), part("two"), part("three")))
		before := values(o.get(t, "/posts/"+id).object(t))
		edit := func(parts ...m) []m {
			if again := o.create(t, later(c.id, parts...)); again != id {
				t.Fatalf("%s became %s", id, again)
			}
			return values(o.get(t, "/posts/"+id).object(t))
		}
		again := edit(m{"id": before[0]["id"], "content": "1"}, m{"id": before[1]["id"], "content": "2"}, m{"id": before[2]["id"], "content": "3"})
		for i := range before {
			if again[i]["id"] != before[i]["id"] {
				t.Fatalf("part %d: %v became %v", i, before[i], again[i])
			}
		}
		edit(m{"id": before[2]["id"], "content": "3"}, m{"id": before[0]["id"], "content": "1"}, m{"id": before[0]["id"], "content": "again"}, m{"content": "4"})
		edit(m{"id": before[0]["id"], "content": "1"}, m{"content": "x", "delay": 3})
		edit(m{"id": before[0]["id"], "content": "a"}, m{"content": "b"})
		if got := contents(o.get(t, "/posts/"+id).object(t)); got != "a | b" || o.count(t) != "1" {
			t.Fatal(got)
		}
		o.do(t, http.MethodPut, "/posts/"+id+"/status", m{"status": "draft"}).want(t, 200)
		o.create(t, request("now", time.Now(), entry(c.id, m{"id": id, "content": "a"}, m{"content": "b"})))
		o.reaches(t, id, "PUBLISHED")
		if got := r.texts(t, c); got != "a | b" {
			t.Fatal(got)
		}
	})
	t.Run("two entries cannot replace one post", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, later(c.id, part("kept")))
		o.do(t, http.MethodPost, "/posts", request("schedule", tomorrow(), entry(c.id, m{"id": id, "content": "x"}), entry(c.id, m{"id": id, "content": "y"}))).refusal(t, 400)
		if got := contents(o.get(t, "/posts/"+id).object(t)); got != "kept" {
			t.Fatal(got)
		}
	})
	t.Run("update changes the content and keeps the state", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		draft := o.create(t, request("draft", time.Now().Add(-time.Hour), entry(c.id, part("draft"))))
		queued := o.create(t, later(c.id, part("queued")))
		for id, state := range map[string]string{draft: "DRAFT", queued: "QUEUE"} {
			o.create(t, request("update", tomorrow(), entry(c.id, m{"id": id, "content": "changed"})))
			if full := o.get(t, "/posts/"+id).object(t); full["state"] != state || full["content"] != "changed" {
				t.Fatalf("%v", full)
			}
		}
		o.do(t, http.MethodPost, "/posts", request("update", tomorrow(), entry(c.id, part("nothing to update")))).refusal(t, 400)
		if n := o.count(t); n != "2" {
			t.Fatalf("%s posts", n)
		}
	})
	t.Run("a published post is edited only with republish", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, now(c.id, part("out")))
		o.reaches(t, id, "PUBLISHED")
		for _, kind := range []string{"now", "schedule", "draft", "update"} {
			o.do(t, http.MethodPost, "/posts", request(kind, time.Now(), entry(c.id, m{"id": id, "content": "again"}))).refusal(t, 409)
		}
		body := now(c.id, m{"id": id, "content": "again"})
		body["republish"] = true
		o.create(t, body)
		eventually(t, "a second post", func() bool { return len(r.published(t, c)) == 2 }, func() any { return r.texts(t, c) })
		if got := r.texts(t, c); got != "out | again" {
			t.Fatal(got)
		}
	})
	t.Run("a thread is a chain of replies", func(t *testing.T) {
		t.Parallel()
		for _, grade := range []string{"A", "C", "E"} {
			o := r.organization(t)
			c := o.channel(t, grade)
			o.reaches(t, o.create(t, now(c.id, part("1"), part("2"), part("3"))), "PUBLISHED")
			out := r.published(t, c)
			if r.texts(t, c) != "1 | 2 | 3" || out[0].ReplyTo != "" || out[1].ReplyTo != out[0].ID || out[2].ReplyTo != out[1].ID {
				t.Fatalf("%s: %v", grade, out)
			}
		}
	})
	t.Run("a delayed part waits for its minutes", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, now(c.id, part("at once"), part("with it"), m{"content": "in an hour", "delay": 60}))
		eventually(t, "the first run", func() bool { return len(r.published(t, c)) == 2 }, func() any { return r.texts(t, c) })
		eventually(t, "the end of the first run", func() bool { return slices.Contains(happened(o.get(t, "/posts/"+id).object(t)), "confirmed") }, func() any { return r.texts(t, c) })
		full := o.get(t, "/posts/"+id).object(t)
		if full["state"] != "QUEUE" || full["status"] != "scheduled" || full["releaseId"] == nil {
			t.Fatalf("a part waits, and the thread is told as %v", full)
		}
		if v := values(full); len(v) != 3 || v[0]["delay"] != 0.0 || v[1]["delay"] != 0.0 || v[2]["delay"] != 60.0 {
			t.Fatalf("%v", full)
		}
		o.do(t, http.MethodDelete, "/posts/"+id, nil).want(t, 200)
		if got := r.texts(t, c); got != "at once | with it" {
			t.Fatal(got)
		}
	})
	t.Run("a deleted post never goes out", func(t *testing.T) {
		t.Parallel()
		for lead := 2 * time.Second; ; lead *= 2 { // a machine that is too slow to delete them in time has more of it
			o := r.organization(t)
			c := o.channel(t, "A")
			due := time.Now().Add(lead)
			gone := o.create(t, request("schedule", due, entry(c.id, part("deleted"))))
			group := o.create(t, request("schedule", due, entry(c.id, part("deleted by group"), part("with its reply"))))
			stays := o.create(t, request("schedule", due.Add(time.Second), entry(c.id, part("stays"))))
			name := o.get(t, "/posts/"+group).object(t)["group"].(string)
			if a := o.do(t, http.MethodDelete, "/posts/"+gone, nil).want(t, 200).object(t); len(a) != 1 || a["id"] != gone {
				t.Fatalf("%v", a)
			}
			if a := o.do(t, http.MethodDelete, "/posts/group/"+name, nil).want(t, 200).object(t); len(a) != 1 || a["id"] != name {
				t.Fatalf("%v", a)
			}
			inTime := time.Now().Before(due)
			for _, path := range []string{"/posts/" + gone, "/posts/" + group, "/posts/group/" + name} {
				o.do(t, http.MethodDelete, path, nil).refusal(t, 404)
			}
			o.get(t, "/posts/"+gone).refusal(t, 404)
			if !inTime {
				continue
			}
			o.reaches(t, stays, "PUBLISHED")
			if got := r.texts(t, c); got != "stays" {
				t.Fatal(got)
			}
			return
		}
	})
	t.Run("what is deleted after it went out stays on the platform", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, now(c.id, part("out")))
		o.reaches(t, id, "PUBLISHED")
		o.do(t, http.MethodDelete, "/posts/"+id, nil).want(t, 200)
		if r.texts(t, c) != "out" || o.count(t) != "0" {
			t.Fatal("it is gone there, or listed here")
		}
	})
	t.Run("connections", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		if a := o.get(t, "/integrations").want(t, 200); strings.TrimSpace(a.Body) != "[]" {
			t.Fatalf("%v", a)
		}
		c := o.channel(t, "A")
		list := o.get(t, "/integrations").want(t, 200).list(t)
		channelShape(t, list[0])
		if len(list) != 1 || list[0]["id"] != c.id || list[0]["name"] != c.account || list[0]["identifier"] != "sandbox" || list[0]["refreshNeeded"] != false {
			t.Fatalf("%v", list)
		}
		if a := o.get(t, "/is-connected").want(t, 200).object(t); len(a) != 1 || a["connected"] != true {
			t.Fatalf("%v", a)
		}
	})
}

func TestList_Posts(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	c := o.channel(t, "A")
	first := time.Date(2040, 1, 1, 12, 0, 0, 0, time.UTC)
	var ids []string
	for i := range 23 {
		ids = append(ids, o.create(t, request("schedule", first.Add(time.Duration(i)*time.Hour), entry(c.id, part("listed"), part("reply")))))
	}
	got := func(o org, query string) string {
		var out []string
		var list []m
		a := o.get(t, "/posts?"+query).want(t, 200)
		if strings.HasPrefix(o.prefix, "/api") {
			var in struct{ Posts []m }
			a.into(t, &in)
			keys(t, a.object(t), "posts")
			list = in.Posts
		} else {
			list = a.list(t)
		}
		for _, v := range list {
			itemShape(t, v)
			out = append(out, v["id"].(string))
		}
		return strings.Join(out, " ")
	}
	joined := func(from, to int) string { return strings.Join(ids[from:to], " ") }
	at := func(i int, zone *time.Location) string {
		return url.QueryEscape(first.Add(time.Duration(i) * time.Hour).In(zone).Format(time.RFC3339))
	}
	alias := o
	alias.prefix = "/api/public/v1"
	for _, o := range []org{o, alias} {
		for query, want := range map[string]string{
			"startDate=" + at(2, time.UTC) + "&endDate=" + at(5, time.UTC):                                    joined(2, 6),
			"startDate=" + at(2, time.FixedZone("", 19800)) + "&endDate=" + at(5, time.FixedZone("", -12600)): joined(2, 6),
			"startDate=2040-01-01T14:00:00&endDate=2040-01-01T15:30:00&page=7&ignored=1":                      joined(2, 4),
			"startDate=2040-01-01&endDate=2040-01-02":                                                         joined(0, 13)[:len(joined(0, 13))],
			"startDate=2039-01-01&endDate=2039-01-02":                                                         "",
			"page=0":           joined(0, 20),
			"page=1":           joined(20, 23),
			"limit=5":          joined(0, 5),
			"page=2&limit=10":  joined(20, 23),
			"page=9&limit=100": "",
		} {
			if list := got(o, query); list != want {
				t.Errorf("%s: %s, not %s", query, list, want)
			}
		}
	}
	for query, more := range map[string]string{"page=0": "true", "page=1": "false", "limit=23": "false", "limit=22": "true"} {
		h := o.get(t, "/posts?"+query).Header
		if h.Get("X-Total-Count") != "23" || h.Get("X-Has-More") != more {
			t.Errorf("%s: %v", query, h)
		}
	}
	full := o.get(t, "/posts/"+ids[0]).want(t, 200).object(t)
	fullShape(t, full)
	if contents(full) != "listed | reply" || full["creationMethod"] != "API" || full["settings"].(m)["__type"] != "sandbox" {
		t.Fatalf("%v", full)
	}
}
