package contract

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestChanges_WhilePostIsSentAreAnsweredTruly changes posts around the moment of their publication. The answer must
// match what the platform has.
func TestChanges_WhilePostIsSentAreAnsweredTruly(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	ask := o.dashboard(t)
	var still sync.Map // channel -> what it had published when nothing more was to come
	changes := []func(t *testing.T, c channel, id, old string, body func(string) m){
		func(t *testing.T, c channel, id, old string, body func(string) m) {
			b := body("edited")
			b["posts"].([]m)[0]["value"].([]m)[0]["id"] = id
			a := o.do(t, http.MethodPost, "/posts", b)
			o.reaches(t, id, "PUBLISHED")
			if want := map[int]string{201: "edited", 409: old}[a.Status]; want == "" || r.texts(t, c) != want {
				t.Errorf("the edit was answered with %v, but %q was published", a, r.texts(t, c))
			}
		},
		func(t *testing.T, c channel, id, old string, _ func(string) m) {
			a := o.do(t, http.MethodPut, "/posts/"+id+"/status", m{"status": "draft"})
			if a.Status == http.StatusOK {
				still.Store(c, "")
				return
			}
			a.refusal(t, http.StatusConflict)
			o.reaches(t, id, "PUBLISHED")
		},
		func(t *testing.T, c channel, id, _ string, body func(string) m) {
			b := body("moved")
			b["date"], b["posts"].([]m)[0]["value"].([]m)[0]["id"] = tomorrow().UTC().Format(time.RFC3339), id
			if a := o.do(t, http.MethodPost, "/posts", b); a.Status == http.StatusCreated {
				still.Store(c, "")
			} else {
				a.refusal(t, http.StatusConflict)
			}
		},
		func(t *testing.T, c channel, id, _ string, _ func(string) m) {
			o.do(t, http.MethodDelete, "/posts/"+id, nil).want(t, http.StatusOK)
			o.get(t, "/posts/"+id).refusal(t, http.StatusNotFound)
		},
		func(t *testing.T, c channel, id, _ string, _ func(string) m) {
			got := ask("PUT", "/integrations/"+c.id+"/pause", m{"paused": true}).want(t, http.StatusOK).object(t)
			if got["inFlight"] == 0.0 {
				still.Store(c, r.texts(t, c))
			}
		},
	}
	t.Run("all", func(t *testing.T) {
		for n := range 10 * len(changes) {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				c := o.channel(t, []string{"A", "C"}[n%2])
				due := time.Now().Add(400 * time.Millisecond)
				body := func(text string) m {
					b := request("schedule", due, entry(c.id, part(text)))
					b["date"] = due.UTC().Format(time.RFC3339Nano)
					return b
				}
				id := o.create(t, body("old"))
				time.Sleep(time.Until(due.Add(time.Duration(rand.IntN(160)-60) * time.Millisecond))) // the race is the point
				changes[n%len(changes)](t, c, id, "old", body)
			})
		}
	})
	// A later post on each channel proves that all earlier ones have ended.
	o.reaches(t, o.create(t, now(o.channel(t, "A").id, part("the last"))), "PUBLISHED")
	still.Range(func(c, had any) bool {
		if got := r.texts(t, c.(channel)); got != had {
			t.Errorf("published are %q, want %q as before the stop", got, had)
		}
		return true
	})
}

// TestNow_NeedsNoSweep: a post for now is claimed because its creation wakes the actor, with a sweep only every hour.
func TestNow_NeedsNoSweep(t *testing.T) {
	t.Parallel()
	r := start(t, map[string]string{"SWEEP": "1h"})
	o := r.organization(t)
	c := o.channel(t, "A")
	o.reaches(t, o.create(t, now(c.id, part("at once"))), "PUBLISHED")
	late := o.create(t, later(c.id, part("moved to now")))
	o.create(t, request("now", time.Now(), entry(c.id, m{"id": late, "content": "moved to now"})))
	o.reaches(t, late, "PUBLISHED")
	full := o.get(t, "/posts/"+late).object(t)
	if got := happened(full); !slices.Equal(got, []string{"written", "edited", "moved", "claimed", "confirmed"}) {
		t.Fatalf("got the events %v, want written, edited, moved, claimed, confirmed", got)
	}
	for i, e := range full["timeline"].([]any) {
		e := e.(m)
		if e["node"] == nil || (e["by"] == nil) != (i > 2) || i > 2 && i != 3 && e["reason"] != "part 1" {
			t.Errorf("event %d has a wrong node, author or reason: %v", i, e)
		}
	}
}
