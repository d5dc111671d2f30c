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

// failing starts a service whose sandbox is scripted to fail. The service may log no error in these
// tests, except one that contains r.expected.
func failing(t *testing.T) *rig {
	t.Helper()
	return start(t, map[string]string{"SETTLE_DELAY": "1s", "RETRY_WINDOW": "10s"})
}

// publishedOnce waits until a post is published, and returns its record. It ends the test unless
// the account has published this text and nothing else.
func (o org) publishedOnce(t *testing.T, c channel, id, text string) record {
	t.Helper()
	full := o.reaches(t, id, "PUBLISHED")
	out := o.published(t, c)
	if len(out) != 1 || out[0].Text != text || full.ReleaseID != out[0].ID {
		t.Fatalf("published are %+v and the record is %+v, want one post %q in both", out, full, text)
	}
	return full
}

// failed waits until a post is in the state ERROR with this code, and returns its record. It ends
// the test unless the account has published n posts.
func (o org) failed(t *testing.T, c channel, id, errorCode string, n int) record {
	t.Helper()
	full := o.reaches(t, id, "ERROR")
	if got := full.Posts[0].ErrorCode; got != errorCode {
		t.Fatalf("the post failed with the code %s, want %s: %+v", got, errorCode, full)
	}
	if out := o.published(t, c); len(out) != n {
		t.Fatalf("published are %+v, want %d posts", out, n)
	}
	return full
}

// wantEvent ends the test unless the timeline of the post has this event.
func (r record) wantEvent(t *testing.T, event string) {
	t.Helper()
	if got := r.events(); !slices.Contains(got, event) {
		t.Fatalf("the timeline has %v, want %s among them", got, event)
	}
}

func TestPlatformFaults(t *testing.T) {
	t.Parallel()
	subjects(t, failing(t), map[string]subject{
		"certain failures are retried":                        testRetries,
		"posts behind one that backs off":                     testBehindBackOff,
		"unknown outcomes are reconciled":                     testReconcile,
		"processing":                                          testProcessing,
		"a revoked channel waits until it is connected again": testRevoked,
	})
}

func testRetries(t *testing.T, r *rig) {
	t.Parallel()
	for name, more := range map[string]m{
		"a busy platform is asked again after the time that it names": {"retryAfter": 1, "times": 2},
		"a busy platform that names no time is asked again":           {"times": 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, grade := range []string{"A", "C", "E"} {
				o := r.organization(t)
				c := o.channel(t, grade)
				r.fault(t, c, "rate_limit", posting(), more)
				o.publishedOnce(t, c, o.create(t, now(c.id, part("busy"))), "busy").wantEvent(t, "retried")
			}
		})
	}
	t.Run("the post fails when the retries are used up", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		r.fault(t, c, "rate_limit", posting(), m{"retryAfter": 0, "times": 100})
		full := o.failed(t, c, o.create(t, now(c.id, part("busy"))), "retries_used_up", 0)
		if got := full.Posts[0].Error; !strings.Contains(got, " tries: ") {
			t.Fatalf("the error is %q, want the number of tries", got)
		}
	})
	t.Run("the post fails on a platform that always fails", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		r.fault(t, c, "error_before", posting(), m{"times": 100_000})
		full := o.failed(t, c, o.create(t, now(c.id, part("fails"))), "retries_used_up", 0)
		// There are four events per attempt, and the back-off leaves time for only a few attempts.
		if n := len(full.Timeline); n > 60 {
			t.Errorf("the timeline has %d events, want at most 60", n)
		}
	})
	t.Run("a Retry-After beyond the retry window fails the post with the platform's message", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		r.fault(t, c, "rate_limit", posting(), m{"retryAfter": 7200, "times": 1})
		full := o.failed(t, c, o.create(t, now(c.id, part("too long"))), "retries_used_up", 0)
		got := full.Posts[0].Error
		if !strings.Contains(got, "one try: ") || !strings.Contains(got, "wait for 2 hours") {
			t.Fatalf("the error is %q, want one try and a wait for 2 hours", got)
		}
		o.publishedOnce(t, c, o.create(t, now(c.id, part("the next"))), "the next")
	})
	t.Run("an access token that expires midway is renewed", func(t *testing.T) {
		t.Parallel()
		for _, match := range []m{posting(), uploading()} {
			o := r.organization(t)
			c := o.channel(t, "C")
			picture := o.stored(t, "a.png", png(t))
			r.fault(t, c, "expire_token", match, nil)
			o.publishedOnce(t, c, o.create(t, now(c.id, part("renewed", picture))), "renewed")
			o.reaches(t, o.create(t, now(c.id, part("the next"))), "PUBLISHED")
		}
	})
}

func testBehindBackOff(t *testing.T, r *rig) {
	t.Parallel()
	t.Run("they wait, and other channels continue", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c, free := o.channel(t, "A"), o.channel(t, "A")
		r.fault(t, c, "rate_limit", posting(), m{"retryAfter": 2})
		o.create(t, now(c.id, part("1")))
		o.create(t, now(c.id, part("2")))
		last := o.create(t, now(c.id, part("3")))
		o.reaches(t, o.create(t, now(free.id, part("at once"))), "PUBLISHED")
		o.reaches(t, last, "PUBLISHED")
		r.wantTexts(t, c, "1 | 2 | 3")
	})
	t.Run("deleting the post that backs off sends the next one at once", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		r.fault(t, c, "rate_limit", posting(), m{"retryAfter": 9, "times": 1})
		first := o.create(t, now(c.id, part("first")))
		eventually(t, "a first try", func() bool { return slices.Contains(o.post(t, first).events(), "retried") },
			func() any { return o.post(t, first).events() })
		second := o.create(t, now(c.id, part("second")))
		o.deletes(t, "/posts/", first)
		o.publishedOnce(t, c, second, "second")
	})
}

func testReconcile(t *testing.T, r *rig) {
	t.Parallel()
	t.Run("a 500 after the platform took the post is reconciled, never repeated", func(t *testing.T) {
		t.Parallel()
		for _, grade := range []string{"A", "C"} {
			for _, action := range []string{"error_after", "drop_answer"} {
				o := r.organization(t)
				c := o.channel(t, grade)
				r.fault(t, c, action, posting(), nil)
				o.publishedOnce(t, c, o.create(t, now(c.id, part("perhaps"))), "perhaps").wantEvent(t, "unknown")
			}
		}
	})
	t.Run("an opaque platform leaves the outcome to the user", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "E")
		r.fault(t, c, "error_after", posting(), nil)
		id := o.create(t, now(c.id, part("perhaps")))
		if full := o.failed(t, c, id, "outcome_unknown", 1); !full.Posts[0].OutcomeUnknown {
			t.Fatalf("outcomeUnknown is false, want true: %+v", full)
		}
		o.changeStatus(t, id, m{"status": "schedule"}).refusal(t, http.StatusConflict)
		edited := now(c.id, m{"id": id, "content": "edited"})
		o.do(t, http.MethodPost, "/posts", edited).refusal(t, http.StatusConflict)
		if n := len(r.published(t, c)); n != 1 {
			t.Fatalf("%d posts are published, want 1", n)
		}
	})
}

func testProcessing(t *testing.T, r *rig) {
	t.Parallel()
	t.Run("the service waits for the platform", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		film := o.stored(t, "a.mp4", mp4())
		r.fault(t, c, "processing", nil, m{"polls": 2})
		o.publishedOnce(t, c, o.create(t, now(c.id, part("film", film))), "film")
	})
	t.Run("refused content fails with the platform's message", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		picture := o.stored(t, "a.png", png(t))
		r.fault(t, c, "processing", nil, m{"polls": 1, "then": "failed"})
		id := o.create(t, now(c.id, part("broken", picture), part("never")))
		full := o.failed(t, c, id, "rejected", 0)
		message := full.Posts[0].Error
		if len(message) < 20 || full.Status != "failed" {
			t.Fatalf("the status is %s with the error %q, want failed with a sentence", full.Status, message)
		}
		item := elements(t, o.get(t, "/posts?page=0").want(t, http.StatusOK).raw())[0]
		itemShape(t, item)
		if got := decode[record](t, item); got.Error != message || got.ErrorCode != "rejected" {
			t.Fatalf("the list has the error %q and the code %s, want %q and rejected", got.Error, got.ErrorCode, message)
		}
		o.changeStatus(t, id, m{"status": "schedule"}).want(t, http.StatusOK)
		o.reaches(t, id, "PUBLISHED")
		r.wantTexts(t, c, "broken | never")
	})
	t.Run("a failed thread part keeps the published parts, and republish starts over", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		picture := o.stored(t, "a.png", png(t))
		r.fault(t, c, "processing", nil, m{"polls": 1, "then": "failed"})
		id := o.create(t, now(c.id, part("1"), part("2", picture)))
		o.reaches(t, id, "ERROR")
		r.wantTexts(t, c, "1")
		o.changeStatus(t, id, m{"status": "schedule"}).refusal(t, http.StatusConflict)
		o.changeStatus(t, id, m{"status": "schedule", "republish": true}).want(t, http.StatusOK)
		o.reaches(t, id, "PUBLISHED")
		r.wantTexts(t, c, "1 | 1 | 2")
	})
}

func testRevoked(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	r.fault(t, c, "expire_token", posting(), m{"times": 2})
	first := o.create(t, now(c.id, part("1")))
	eventually(t, "refreshNeeded", func() bool { return o.channels(t)[0].RefreshNeeded },
		func() any { return o.channels(t) })
	second := o.create(t, now(c.id, part("2")))
	o.wantState(t, first, "QUEUE")
	o.wantState(t, second, "QUEUE")
	reconnect(t, o, c)
	o.reaches(t, second, "PUBLISHED")
	r.wantTexts(t, c, "1 | 2")
	if list := o.channels(t); len(list) != 1 || list[0].ID != c.id || list[0].RefreshNeeded {
		t.Fatalf("the channels are %+v, want only %s, connected", list, c.id)
	}
}

// reconnect connects a channel again as the dashboard does, after attempts that are refused and
// must change nothing.
func reconnect(t *testing.T, o org, c channel) {
	t.Helper()
	person := o
	person.prefix, person.key = "", ""
	signIn := m{"provider": "LOCAL", "email": o.email, "password": password}
	session := person.do(t, http.MethodPost, "/auth/login", signIn).want(t, http.StatusCreated).Cookie("auth")
	begin := func(refresh string) answer {
		return person.do(t, http.MethodGet, "/integrations/social/sandbox?refresh="+refresh, nil,
			"auth", session, "showorg", o.who.Org.String())
	}
	state := func() string { return read[next](t, begin(c.id).want(t, http.StatusOK)).URL }
	finish := func(state, code string) answer {
		return person.do(t, http.MethodPost, "/integrations/social-connect/sandbox", m{"state": state, "code": code})
	}
	right := code(t, o.sandbox, c.account, "A")
	begin("nobody").refusal(t, http.StatusBadRequest)
	finish(state(), code(t, o.sandbox, c.account+"-other", "A")).refusal(t, http.StatusBadRequest)
	begun := state()
	finish(begun, "not base64 !").refusal(t, http.StatusBadRequest)
	finish("unknown", right).refusal(t, http.StatusBadRequest)
	a := finish(begun, right).want(t, http.StatusCreated)
	if got := read[channelRecord](t, a); got.ID != c.id || got.RefreshNeeded || got.InternalID == "" {
		t.Fatalf("the channel is %+v, want %s, connected, with the id of the account", got, c.id)
	}
	for name := range decode[m](t, a.raw()) {
		name = strings.ToLower(name)
		if strings.Contains(name, "token") || strings.Contains(name, "credential") {
			t.Fatalf("the answer has the member %s, want no secret: %v", name, a)
		}
	}
	finish(begun, right).refusal(t, http.StatusBadRequest)
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
