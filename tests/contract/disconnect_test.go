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
	r := start(t, nil)
	o := r.organization(t)
	o2 := r.organization(t)
	gone, kept := o.channel(t, "A"), o.channel(t, "A")
	out := o.create(t, now(gone.id, part("already out")))
	o.reaches(t, out, "PUBLISHED")
	waiting := []string{
		o.create(t, later(gone.id, part("planned"), m{"content": "reply", "delay": 5})),
		o.create(t, request("draft", tomorrow(), entry(gone.id, part("a draft")))),
	}
	begun := o.create(t, now(gone.id, part("first of a thread"), m{"content": "much later", "delay": 600}))
	repeated := later(gone.id, part("every day"))
	repeated["inter"] = 1
	waiting = append(waiting, o.create(t, repeated))
	other := o.create(t, later(kept.id, part("of another channel")))
	soon := time.Now().Add(5 * time.Second)
	waiting = append(waiting, o.create(t, request("schedule", soon, entry(gone.id, part("due after the disconnect")))))
	witness := o.create(t, request("schedule", soon.Add(time.Second), entry(kept.id, part("due after that"))))
	eventually(t, "the first of the thread", func() bool { return r.texts(t, gone) == "already out | first of a thread" }, func() any { return r.texts(t, gone) })
	eventually(t, "its end in Postgres", func() bool { return o.get(t, "/posts/"+begun).want(t, 200).object(t)["releaseId"] != nil }, func() any { return o.get(t, "/posts/"+begun).object(t) })

	o2.do(t, http.MethodDelete, "/integrations/"+gone.id, nil).refusal(t, 404)
	o.do(t, http.MethodDelete, "/integrations/x", nil).refusal(t, 404)
	if a := o.do(t, http.MethodDelete, "/integrations/"+gone.id, nil).want(t, 200); a.object(t)["id"] != gone.id || len(a.object(t)) != 1 {
		t.Fatal(a)
	}
	o.do(t, http.MethodDelete, "/integrations/"+gone.id, nil).refusal(t, 404)
	for _, post := range waiting {
		o.get(t, "/posts/"+post).refusal(t, 404)
	}
	for _, post := range []string{out, begun} {
		if v := o.get(t, "/posts/"+post).want(t, 200).object(t); v["state"] != "PUBLISHED" || len(v["posts"].([]any)[0].(m)["value"].([]any)) != 1 {
			t.Errorf("what was published is %v", v)
		}
	}
	if list := o.get(t, "/integrations").list(t); len(list) != 1 || list[0]["id"] != kept.id {
		t.Errorf("%v", list)
	}
	o.do(t, http.MethodPost, "/posts", later(gone.id, part("too late"))).refusal(t, 400)
	o.do(t, http.MethodPut, "/posts/"+out+"/status", m{"status": "schedule", "republish": true}).refusal(t, 400)
	if v := o.get(t, "/posts/"+out).object(t); v["state"] != "PUBLISHED" || v["releaseId"] == nil {
		t.Errorf("what was published is %v", v)
	}
	if v := o.get(t, "/posts/"+other).want(t, 200).object(t); v["state"] != "QUEUE" {
		t.Errorf("the other channel's is %v", v)
	}
	again := o.channel(t, "A")
	o.reaches(t, o.create(t, now(again.id, part("anew"))), "PUBLISHED")
	o.reaches(t, witness, "PUBLISHED")
	if got := r.texts(t, gone); got != "already out | first of a thread" {
		t.Errorf("the platform has %q", got)
	}
}

// TestDisconnect_RemovesConcurrentCreatesAndPauses creates and pauses while a channel is disconnected.
func TestDisconnect_RemovesConcurrentCreatesAndPauses(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	ask := o.dashboard(t)
	for range 8 {
		c := o.channel(t, "A")
		var group sync.WaitGroup
		ids := make(chan string, 6)
		for i := range cap(ids) {
			group.Go(func() {
				if a := o.do(t, http.MethodPost, "/posts", later(c.id, part(fmt.Sprint("post ", i)))); a.Status == http.StatusCreated {
					ids <- a.list(t)[0]["postId"].(string)
				} else if a.Status != http.StatusBadRequest {
					t.Errorf("%v", a)
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
