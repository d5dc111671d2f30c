package contract

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"crier/publishing"
)

func posting() m { return m{"method": "POST", "path": "/api/posts"} }

func uploading() m { return m{"method": "POST", "path": "/api/media"} }

func TestPlatformFaults(t *testing.T) {
	t.Parallel()
	// The sandbox is scripted to fail. No error is logged in these tests except where r.expected names one.
	r := start(t, map[string]string{"SETTLE_TIME": "1s", "BACKOFF_FOR": "10s"})
	once := func(t *testing.T, o org, c channel, id, text string) m {
		t.Helper()
		full := o.reaches(t, id, "PUBLISHED")
		out := r.published(t, c)
		if len(out) != 1 || out[0].Text != text || full["releaseId"] != out[0].ID {
			t.Fatalf("published %v, record %v", out, full)
		}
		return full
	}
	for name, more := range map[string]m{"a busy platform is asked again after the time that it names": {"retryAfter": 1, "times": 2}, "a busy platform that names no time is asked again": {"times": 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, grade := range []string{"A", "C", "E"} {
				o := r.organization(t)
				c := o.channel(t, grade)
				r.fault(t, c, "rate_limit", posting(), more)
				full := once(t, o, c, o.create(t, now(c.id, part("busy"))), "busy")
				if got := happened(full); !slices.Contains(got, "retried") {
					t.Fatalf("timeline %v", got)
				}
			}
		})
	}
	t.Run("the post fails when the retries are used up", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		r.fault(t, c, "rate_limit", posting(), m{"retryAfter": 0, "times": 100})
		e := o.reaches(t, o.create(t, now(c.id, part("busy"))), "ERROR")["posts"].([]any)[0].(m)
		if e["errorCode"] != "retries_used_up" || len(r.published(t, c)) != 0 || !strings.Contains(e["error"].(string), " tries: ") {
			t.Fatalf("%v", e)
		}
	})
	t.Run("the post fails on a platform that always fails", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		r.fault(t, c, "error_before", posting(), m{"times": 100_000})
		full := o.reaches(t, o.create(t, now(c.id, part("fails"))), "ERROR")
		if e := full["posts"].([]any)[0].(m); e["errorCode"] != "retries_used_up" || len(r.published(t, c)) != 0 {
			t.Fatalf("%v", e)
		}
		if n := len(happened(full)); n > 60 { // four a try: with a back-off there is time for few
			t.Errorf("%d things happened", n)
		}
	})
	t.Run("a Retry-After beyond the retry window fails the post with the platform's message", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		r.fault(t, c, "rate_limit", posting(), m{"retryAfter": 7200, "times": 1})
		e := o.reaches(t, o.create(t, now(c.id, part("too long"))), "ERROR")["posts"].([]any)[0].(m)
		if e["errorCode"] != "retries_used_up" || !strings.Contains(e["error"].(string), "one try: ") || !strings.Contains(e["error"].(string), "wait for 2 hours") {
			t.Fatalf("%v", e)
		}
		once(t, o, c, o.create(t, now(c.id, part("the next"))), "the next")
	})
	t.Run("the next post is sent at once when the one that backs off is deleted", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		r.fault(t, c, "rate_limit", posting(), m{"retryAfter": 9, "times": 1})
		first := o.create(t, now(c.id, part("first")))
		eventually(t, "a first try", func() bool {
			return slices.Contains(happened(o.get(t, "/posts/"+first).want(t, http.StatusOK).object(t)), "retried")
		}, func() any { return first })
		second := o.create(t, now(c.id, part("second")))
		o.do(t, http.MethodDelete, "/posts/"+first, nil).want(t, http.StatusOK)
		once(t, o, c, second, "second")
	})
	t.Run("an access token that ends midway is renewed", func(t *testing.T) {
		t.Parallel()
		for _, match := range []m{posting(), uploading()} {
			o := r.organization(t)
			c := o.channel(t, "C")
			medium := o.upload(t, "a.png", png(t)).want(t, 201).object(t)
			r.fault(t, c, "expire_token", match, nil)
			once(t, o, c, o.create(t, now(c.id, part("renewed", medium))), "renewed")
			o.reaches(t, o.create(t, now(c.id, part("the next"))), "PUBLISHED")
		}
	})
	t.Run("a 500 after the platform took the post is reconciled, never repeated", func(t *testing.T) {
		t.Parallel()
		for _, grade := range []string{"A", "C"} {
			for _, action := range []string{"error_after", "drop_answer"} {
				o := r.organization(t)
				c := o.channel(t, grade)
				r.fault(t, c, action, posting(), nil)
				full := once(t, o, c, o.create(t, now(c.id, part("perhaps"))), "perhaps")
				if got := happened(full); !slices.Contains(got, "unknown") {
					t.Fatalf("%s %s: timeline %v", grade, action, got)
				}
			}
		}
	})
	t.Run("an opaque platform leaves the outcome to the user", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "E")
		r.fault(t, c, "error_after", posting(), nil)
		id := o.create(t, now(c.id, part("perhaps")))
		e := o.reaches(t, id, "ERROR")["posts"].([]any)[0].(m)
		if e["errorCode"] != "outcome_unknown" || e["outcomeUnknown"] != true || len(r.published(t, c)) != 1 {
			t.Fatalf("%v", e)
		}
		o.do(t, http.MethodPut, "/posts/"+id+"/status", m{"status": "schedule"}).refusal(t, 409)
		o.do(t, http.MethodPost, "/posts", now(c.id, m{"id": id, "content": "edited"})).refusal(t, 409)
		if n := len(r.published(t, c)); n != 1 {
			t.Fatalf("%d posts", n)
		}
	})
	t.Run("processing is waited for", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		medium := o.upload(t, "a.mp4", mp4()).want(t, 201).object(t)
		r.fault(t, c, "processing", nil, m{"polls": 2})
		once(t, o, c, o.create(t, now(c.id, part("film", medium))), "film")
	})
	t.Run("refused content fails with the platform's message", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		medium := o.upload(t, "a.png", png(t)).want(t, 201).object(t)
		r.fault(t, c, "processing", nil, m{"polls": 1, "then": "failed"})
		id := o.create(t, now(c.id, part("broken", medium), part("never")))
		full := o.reaches(t, id, "ERROR")
		e := full["posts"].([]any)[0].(m)
		if e["errorCode"] != "rejected" || len(e["error"].(string)) < 20 || full["status"] != "failed" || len(r.published(t, c)) != 0 {
			t.Fatalf("%v", full)
		}
		item := o.get(t, "/posts?page=0").want(t, 200).list(t)[0]
		itemShape(t, item)
		if item["error"] != e["error"] || item["errorCode"] != "rejected" {
			t.Fatalf("%v", item)
		}
		o.do(t, http.MethodPut, "/posts/"+id+"/status", m{"status": "schedule"}).want(t, 200)
		o.reaches(t, id, "PUBLISHED")
		if got := r.texts(t, c); got != "broken | never" {
			t.Fatal(got)
		}
	})
	t.Run("a failed thread part keeps the published parts, and republish starts over", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		medium := o.upload(t, "a.png", png(t)).want(t, 201).object(t)
		r.fault(t, c, "processing", nil, m{"polls": 1, "then": "failed"})
		id := o.create(t, now(c.id, part("1"), part("2", medium)))
		o.reaches(t, id, "ERROR")
		if got := r.texts(t, c); got != "1" {
			t.Fatal(got)
		}
		o.do(t, http.MethodPut, "/posts/"+id+"/status", m{"status": "schedule"}).refusal(t, 409)
		o.do(t, http.MethodPut, "/posts/"+id+"/status", m{"status": "schedule", "republish": true}).want(t, 200)
		o.reaches(t, id, "PUBLISHED")
		if got := r.texts(t, c); got != "1 | 1 | 2" {
			t.Fatal(got)
		}
	})
	t.Run("posts wait behind one that backs off, and other channels continue", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c, free := o.channel(t, "A"), o.channel(t, "A")
		r.fault(t, c, "rate_limit", posting(), m{"retryAfter": 2})
		o.create(t, now(c.id, part("1")))
		o.create(t, now(c.id, part("2")))
		last := o.create(t, now(c.id, part("3")))
		o.reaches(t, o.create(t, now(free.id, part("at once"))), "PUBLISHED")
		o.reaches(t, last, "PUBLISHED")
		if got := r.texts(t, c); got != "1 | 2 | 3" {
			t.Fatal(got)
		}
	})
	t.Run("a channel whose access is revoked waits until it is connected again", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		r.fault(t, c, "expire_token", posting(), m{"times": 2})
		first := o.create(t, now(c.id, part("1")))
		eventually(t, "refreshNeeded", func() bool { return o.get(t, "/integrations").list(t)[0]["refreshNeeded"] == true }, func() any { return o.get(t, "/integrations") })
		second := o.create(t, now(c.id, part("2")))
		for _, id := range []string{first, second} {
			if full := o.get(t, "/posts/"+id).object(t); full["state"] != "QUEUE" {
				t.Fatalf("%v", full)
			}
		}
		reconnect(t, o, c)
		o.reaches(t, second, "PUBLISHED")
		if got := r.texts(t, c); got != "1 | 2" {
			t.Fatal(got)
		}
		if list := o.get(t, "/integrations").list(t); len(list) != 1 || list[0]["id"] != c.id || list[0]["refreshNeeded"] != false {
			t.Fatalf("%v", list)
		}
	})
}

// reconnect connects a channel again as the dashboard does, after refused attempts that must change nothing.
func reconnect(t *testing.T, o org, c channel) {
	t.Helper()
	person := o
	person.prefix, person.key = "", ""
	session := person.do(t, http.MethodPost, "/auth/login", m{"provider": "LOCAL", "email": o.email, "password": password}).want(t, 201).Cookie("auth")
	begin := func(refresh string) answer {
		return person.do(t, http.MethodGet, "/integrations/social/sandbox?refresh="+refresh, nil, "auth", session, "showorg", o.who.Org.String())
	}
	finish := func(state, code string) answer {
		return person.do(t, http.MethodPost, "/integrations/social-connect/sandbox", m{"state": state, "code": code})
	}
	begin("nobody").refusal(t, 400)
	other := begin(c.id).want(t, 200).object(t)["url"].(string)
	finish(other, code(t, o.sandbox, c.account+"-other", "A")).refusal(t, 400)
	state := begin(c.id).want(t, 200).object(t)["url"].(string)
	finish(state, "not base64 !").refusal(t, 400)
	finish("unknown", code(t, o.sandbox, c.account, "A")).refusal(t, 400)
	got := finish(state, code(t, o.sandbox, c.account, "A")).want(t, 201).object(t)
	if got["id"] != c.id || got["refreshNeeded"] != false || got["internalId"] == "" {
		t.Fatalf("%v", got)
	}
	for k := range got {
		if strings.Contains(strings.ToLower(k), "token") || strings.Contains(strings.ToLower(k), "credential") {
			t.Fatalf("a secret is told: %v", got)
		}
	}
	finish(state, code(t, o.sandbox, c.account, "A")).refusal(t, 400)
}

func TestConnect_LostDatabaseIs503(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	state, err := o.app.Channels.Begin(t.Context(), o.who, publishing.BeginConnect{Connector: "sandbox"})
	if err != nil {
		t.Fatal(err)
	}
	body := m{"state": state, "code": code(t, o.sandbox, "account", "A")}
	person := o
	person.prefix, person.key = "", ""
	r.expected.Store("the database is stopping")
	r.as(t, "none", "", `create function away() returns trigger language plpgsql as $$
		begin raise exception 'the database is stopping' using errcode = '57P03'; end $$;
		create trigger away before delete on connect_state execute function away()`)
	person.do(t, http.MethodPost, "/integrations/social-connect/sandbox", body).want(t, http.StatusServiceUnavailable)
	r.as(t, "none", "", "drop trigger away on connect_state")
	person.do(t, http.MethodPost, "/integrations/social-connect/sandbox", body).want(t, http.StatusCreated)
}
