package contract

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"crier/tests/sandboxtest"
)

// silence makes the sandbox accept a post, lose its response, and then fail every later request of
// the service.
func (r *rig) silence(t *testing.T, c channel, after string) {
	t.Helper()
	r.fault(t, c, "drop_answer", posting(), nil)
	more := m{"times": 100_000}
	if after == "rate_limit" {
		more["retryAfter"] = 1
	}
	r.fault(t, c, after, m{}, more)
}

// speak clears all faults of the sandbox.
func (r *rig) speak(t *testing.T) {
	t.Helper()
	if err := r.judge().Clear(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
}

// held returns the number of requests that hang at the sandbox.
func (r *rig) held(t *testing.T) (n int) {
	t.Helper()
	all, err := r.judge().Held(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, held := range all {
		n += held
	}
	return n
}

var briefly = map[string]string{"SETTLE_DELAY": "1s", "RECONCILE_WINDOW": "2s", "RETRY_WINDOW": "3s"}

// TestUnknown_IsNeverReportedAsFailed covers a platform that has the post, whose response was lost,
// and that then fails for longer than the service reconciles.
func TestUnknown_IsNeverReportedAsFailed(t *testing.T) {
	t.Parallel()
	for _, after := range []string{"error_before", "rate_limit"} {
		t.Run(after, func(t *testing.T) {
			t.Parallel()
			r := start(t, briefly) // not shared, because speak clears the faults of all accounts
			o := r.organization(t)
			c := o.channel(t, "A")
			r.silence(t, c, after)
			id := o.create(t, now(c.id, part("once only")))
			if full := o.failed(t, c, id, "outcome_unknown", 1); !full.Posts[0].OutcomeUnknown {
				t.Fatalf("outcomeUnknown of a published post is false, want true: %+v", full)
			}
			r.speak(t)
			o.changeStatus(t, id, m{"status": "schedule"}).refusal(t, http.StatusConflict)
			edited := now(c.id, m{"id": id, "content": "other words"})
			o.do(t, http.MethodPost, "/posts", edited).refusal(t, http.StatusConflict)
			o.changeStatus(t, id, m{"status": "draft"}).want(t, http.StatusOK)
			o.wantState(t, id, "DRAFT")
			o.changeStatus(t, id, m{"status": "schedule"}).refusal(t, http.StatusConflict)
			r.wantTexts(t, c, "once only")
			o.changeStatus(t, id, m{"status": "schedule", "republish": true}).want(t, http.StatusOK)
			o.reaches(t, id, "PUBLISHED")
		})
	}
}

func TestUnknown_CannotBeEditedDuringRetries(t *testing.T) {
	t.Parallel()
	r := start(t, map[string]string{"SETTLE_DELAY": "1s", "RECONCILE_WINDOW": "2s", "RETRY_WINDOW": "60s"})
	o := r.organization(t)
	c := o.channel(t, "A")
	r.fault(t, c, "drop_answer", posting(), nil)
	r.fault(t, c, "rate_limit", m{}, m{"times": 100_000, "retryAfter": 4})
	id := o.create(t, now(c.id, part("first words")))
	var full record
	eventually(t, "a second try", func() bool {
		full = o.post(t, id)
		return slices.Contains(full.events(), "retried")
	}, func() any { return full.events() })
	edit := func() int {
		return o.do(t, http.MethodPost, "/posts", now(c.id, m{"id": id, "content": "other words"})).Status
	}
	for range 5 {
		if got := edit(); got != http.StatusConflict {
			t.Fatalf("an edit of a post that may be published is answered with %d, want 409", got)
		}
		o.changeStatus(t, id, m{"status": "schedule"}).refusal(t, http.StatusConflict)
	}
	r.speak(t)
	o.reaches(t, id, "PUBLISHED")
	r.wantTexts(t, c, "first words")
}

func TestUnknown_CanBeDeleted(t *testing.T) {
	t.Parallel()
	r := start(t, briefly)
	o := r.organization(t)
	c := o.channel(t, "A")
	r.silence(t, c, "error_before")
	id := o.create(t, now(c.id, part("once only")))
	o.reaches(t, id, "ERROR")
	o.do(t, http.MethodDelete, "/posts/"+id, nil).want(t, http.StatusOK)
	o.get(t, "/posts/"+id).refusal(t, http.StatusNotFound)
	r.speak(t)
	r.wantTexts(t, c, "once only")
}

// TestHangingServer_DelaysNoOtherServer checks that posts on a server that hangs take at most half
// of a process's permits.
func TestHangingServer_DelaysNoOtherServer(t *testing.T) {
	t.Parallel()
	elsewhere := sandboxtest.Start(t) // another destination
	r := start(t, map[string]string{
		"MAX_IN_FLIGHT": "16", "PLATFORM_TIMEOUT": "10m", "OUTBOUND_ALLOW": strings.TrimPrefix(elsewhere, "http://"),
	})
	for range 3 {
		o := r.organization(t)
		for i := range 8 {
			c := o.channel(t, "A")
			r.fault(t, c, "hold", posting(), m{"times": 1})
			o.create(t, now(c.id, part(fmt.Sprint("hangs ", i))))
		}
	}
	eventually(t, "calls that hang", func() bool { return r.held(t) == 8 }, func() any { return r.held(t) })
	healthy := r.organization(t)
	there := *r
	there.sandbox, healthy.rig = elsewhere, &there
	c := healthy.channel(t, "A")
	// The calls that hang are far from ending.
	healthy.reaches(t, healthy.create(t, now(c.id, part("healthy"))), "PUBLISHED")
	if n := r.held(t); n != 8 {
		t.Fatalf("%d calls hang, want 8, half of the permits", n)
	}
	r.speak(t)
}
