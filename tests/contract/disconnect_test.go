package contract

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

func TestDisconnect(t *testing.T) {
	t.Parallel()
	r := common(t)
	o, other := r.organization(t), r.organization(t)
	gone, kept := o.channel(t, "A"), o.channel(t, "A")
	out := o.create(t, now(gone.id, part("already out")))
	o.reaches(t, out, "PUBLISHED")
	begun := o.create(t, now(gone.id, part("first of a thread"), m{"content": "much later", "delay": 600}))
	queued := o.create(t, later(kept.id, part("of another channel")))
	soon := time.Now().Add(5 * time.Second)
	waiting := []string{
		o.create(t, later(gone.id, part("planned"), m{"content": "reply", "delay": 5})),
		o.create(t, request("draft", tomorrow(), entry(gone.id, part("a draft")))),
		o.create(t, repeating(later(gone.id, part("every day")), m{"inter": 1})),
		o.create(t, request("schedule", soon, entry(gone.id, part("due after the disconnect")))),
	}
	witness := o.create(t, request("schedule", soon.Add(time.Second), entry(kept.id, part("due after that"))))
	r.publishes(t, gone, 2)
	eventually(t, "its end in Postgres", func() bool { return o.post(t, begun).ReleaseID != "" },
		func() any { return o.post(t, begun) })

	other.do(t, http.MethodDelete, "/integrations/"+gone.id, nil).refusal(t, http.StatusNotFound)
	o.do(t, http.MethodDelete, "/integrations/x", nil).refusal(t, http.StatusNotFound)
	o.deletes(t, "/integrations/", gone.id)
	o.do(t, http.MethodDelete, "/integrations/"+gone.id, nil).refusal(t, http.StatusNotFound)
	for _, post := range waiting {
		o.get(t, "/posts/"+post).refusal(t, http.StatusNotFound)
	}
	for _, post := range []string{out, begun} {
		if v := o.wantState(t, post, "PUBLISHED"); len(v.values()) != 1 {
			t.Errorf("the published post has the parts %+v, want only the published one", v.values())
		}
	}
	if list := o.channels(t); len(list) != 1 || list[0].ID != kept.id {
		t.Errorf("the channels are %+v, want only %s", list, kept.id)
	}
	o.do(t, http.MethodPost, "/posts", later(gone.id, part("too late"))).refusal(t, http.StatusBadRequest)
	o.changeStatus(t, out, m{"status": "schedule", "republish": true}).refusal(t, http.StatusBadRequest)
	if v := o.wantState(t, out, "PUBLISHED"); v.ReleaseID == "" {
		t.Errorf("the published post has no release: %+v", v)
	}
	o.wantState(t, queued, "QUEUE")
	o.reaches(t, o.create(t, now(o.channel(t, "A").id, part("new"))), "PUBLISHED")
	o.reaches(t, witness, "PUBLISHED")
	r.wantTexts(t, gone, "already out | first of a thread")
}

// TestDisconnect_RemovesConcurrentCreatesAndPauses creates posts and pauses a channel while it is
// being disconnected.
func TestDisconnect_RemovesConcurrentCreatesAndPauses(t *testing.T) {
	t.Parallel()
	r := common(t)
	o := r.organization(t)
	ask := o.dashboard(t)
	for range 8 {
		c := o.channel(t, "A")
		var group sync.WaitGroup
		ids := make(chan string, 6)
		for i := range cap(ids) {
			group.Go(func() {
				a := o.do(t, http.MethodPost, "/posts", later(c.id, part(fmt.Sprint("post ", i))))
				switch a.Status {
				case http.StatusCreated:
					ids <- read[[]created](t, a)[0].PostID
				case http.StatusBadRequest:
				default:
					t.Errorf("a create is answered with %v, want 201 or 400", a)
				}
			})
		}
		group.Go(func() { ask("PUT", "/integrations/"+c.id+"/pause", m{"paused": true}) })
		group.Go(func() { o.do(t, http.MethodDelete, "/integrations/"+c.id, nil).want(t, http.StatusOK) })
		group.Wait()
		close(ids)
		for id := range ids {
			o.get(t, "/posts/"+id).refusal(t, http.StatusNotFound)
		}
	}
}
