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

// racing is a scheduled post that a test changes around the time it is published.
type racing struct {
	org
	channel channel
	id, old string
	due     time.Time
	// ask sends a request with a session.
	ask func(method, path string, body any, headers ...string) answer
	// settled records what the channel had published at a moment after which nothing more may be
	// published.
	settled func(channel, string)
}

// edit returns a body that changes the text of the post and keeps its date.
func (p racing) edit(text string) m {
	body := request("schedule", p.due, entry(p.channel.id, m{"id": p.id, "content": text}))
	body["date"] = p.due.UTC().Format(time.RFC3339Nano)
	return body
}

// changes holds changes to a post that is being sent. Each checks that its response matches what
// the platform has.
var changes = map[string]func(t *testing.T, p racing){
	"edit": func(t *testing.T, p racing) {
		a := p.do(t, http.MethodPost, "/posts", p.edit("edited"))
		p.reaches(t, p.id, "PUBLISHED")
		want := map[int]string{http.StatusCreated: "edited", http.StatusConflict: p.old}[a.Status]
		if got := p.texts(t, p.channel); want == "" || got != want {
			t.Errorf("the edit was answered with %v, and %q was published, want %q", a, got, want)
		}
	},
	"draft": func(t *testing.T, p racing) {
		a := p.changeStatus(t, p.id, m{"status": "draft"})
		if a.Status == http.StatusOK {
			p.settled(p.channel, "")
			return
		}
		a.refusal(t, http.StatusConflict)
		p.reaches(t, p.id, "PUBLISHED")
	},
	"move": func(t *testing.T, p racing) {
		body := p.edit("moved")
		body["date"] = tomorrow().UTC().Format(time.RFC3339)
		a := p.do(t, http.MethodPost, "/posts", body)
		if a.Status == http.StatusCreated {
			p.settled(p.channel, "")
			return
		}
		a.refusal(t, http.StatusConflict)
	},
	"delete": func(t *testing.T, p racing) {
		p.do(t, http.MethodDelete, "/posts/"+p.id, nil).want(t, http.StatusOK)
		p.get(t, "/posts/"+p.id).refusal(t, http.StatusNotFound)
	},
	"pause": func(t *testing.T, p racing) {
		a := p.ask(http.MethodPut, "/integrations/"+p.channel.id+"/pause", m{"paused": true}).want(t, http.StatusOK)
		if read[paused](t, a).InFlight == 0 {
			p.settled(p.channel, p.texts(t, p.channel))
		}
	},
}

// TestChanges_DuringSendMatchPlatform changes posts around the time they are published. The
// responses must match what the platform has.
func TestChanges_DuringSendMatchPlatform(t *testing.T) {
	t.Parallel()
	r := common(t)
	o := r.organization(t)
	ask := o.dashboard(t)
	var settled sync.Map // channel -> texts
	t.Run("all", func(t *testing.T) {
		for name, change := range changes {
			for n := range 10 {
				t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
					t.Parallel()
					p := racing{
						org: o, channel: o.channel(t, []string{"A", "C"}[n%2]), old: "old", ask: ask,
						due:     time.Now().Add(400 * time.Millisecond),
						settled: func(c channel, texts string) { settled.Store(c, texts) },
					}
					body := p.edit(p.old)
					body["posts"] = []m{entry(p.channel.id, part(p.old))}
					p.id = o.create(t, body)
					offset := time.Duration(rand.IntN(160)-60) * time.Millisecond
					time.Sleep(time.Until(p.due.Add(offset))) // the race is the point
					change(t, p)
				})
			}
		}
	})
	// A later post proves that all earlier ones have ended.
	o.reaches(t, o.create(t, now(o.channel(t, "A").id, part("the last"))), "PUBLISHED")
	settled.Range(func(c, want any) bool {
		if got := r.texts(t, c.(channel)); got != want {
			t.Errorf("published are %q, want %q as before the stop", got, want)
		}
		return true
	})
}

// TestNow_NeedsNoSweep checks that creating a post for now wakes the actor, which claims it. The
// sweep runs only every hour.
func TestNow_NeedsNoSweep(t *testing.T) {
	t.Parallel()
	r := start(t, map[string]string{"SWEEP_INTERVAL": "1h"})
	o := r.organization(t)
	c := o.channel(t, "A")
	o.reaches(t, o.create(t, now(c.id, part("at once"))), "PUBLISHED")
	late := o.create(t, later(c.id, part("moved to now")))
	o.create(t, request("now", time.Now(), entry(c.id, m{"id": late, "content": "moved to now"})))
	o.reaches(t, late, "PUBLISHED")
	full := o.post(t, late)
	want := []string{"written", "edited", "moved", "claimed", "confirmed"}
	if got := full.events(); !slices.Equal(got, want) {
		t.Fatalf("the timeline has %v, want %v", got, want)
	}
	for i, e := range full.Timeline {
		if byPerson := i <= 2; e.Node == "" || (e.By.Kind == "key" && e.By.ID != "" && e.By.Name != "") != byPerson {
			t.Errorf("event %d is %+v, want a node, and an author only of the first three", i, e)
		}
		if i == 4 && e.Reason != "part 1" {
			t.Errorf("event %d is %+v, want the reason part 1", i, e)
		}
	}
}
