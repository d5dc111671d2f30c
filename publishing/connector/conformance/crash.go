package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"crier/platform/clock"
	"crier/publishing/connector"
)

// crash kills the pretended engine at every place between two steps and goes on with a new connector and what was stored.
func (s Suite) crash(t *testing.T) {
	steps := s.countSteps(t)
	for n := range steps + 1 {
		t.Run(fmt.Sprintf("after %d stored steps is one post", n), func(t *testing.T) { s.crashAfter(t, n, false) })
	}
	for n := range steps {
		t.Run(fmt.Sprintf("before step %d is stored is one post", n+1), func(t *testing.T) { s.crashAfter(t, n, true) })
	}
	t.Run("between the mark and the commit is at most one post", func(t *testing.T) {
		r := s.home(t)
		item := r.prepare(r.loaded())
		item.Committing = r.s.Clock.Now()
		r.restart()
		r.settle(item, false)
	})
	t.Run("after the commit is one post", func(t *testing.T) {
		r := s.home(t)
		item := r.prepare(r.loaded())
		if _, err := r.commit(&item); err != nil {
			t.Fatalf("Commit: %v", err)
		}
		r.restart()
		r.settle(item, true)
		r.want(1, item)
	})
	t.Run("in a reply after the commit is one post", func(t *testing.T) {
		r := s.home(t)
		root := r.publishOnce(r.item())
		reply := r.item()
		reply.Root, reply.Parent = &root, &root
		reply = r.prepare(reply)
		if _, err := r.commit(&reply); err != nil {
			t.Fatalf("Commit: %v", err)
		}
		r.restart()
		r.settle(reply, true)
		r.want(1, reply)
	})
}

// countSteps tells after how many Prepares an item is Ready.
func (s Suite) countSteps(t *testing.T) int {
	t.Helper()
	r := s.home(t)
	counter := &counted{Connector: watched{r.c, r}}
	if _, err := Prepare(t.Context(), counter, r.s, r.loaded()); err != nil {
		t.Fatalf("Prepare: %v", err)
	}
	return counter.steps
}

// crashAfter stores n steps, takes one more whose result is lost if asked, and starts again.
func (s Suite) crashAfter(t *testing.T, n int, lose bool) {
	r := s.home(t)
	item := r.loaded()
	for range n {
		step, err := watched{r.c, r}.Prepare(t.Context(), r.s, item)
		if err != nil {
			t.Fatalf("Prepare: %v", err)
		}
		if item.Handle, err = store(step.Handle); err != nil {
			t.Fatal(err)
		}
		if err := clock.Sleep(t.Context(), min(step.Wait, longest)); err != nil {
			t.Fatal(err)
		}
	}
	if lose {
		if _, err := (watched{r.c, r}).Prepare(t.Context(), r.s, item); err != nil {
			t.Fatalf("Prepare: %v", err)
		}
	}
	r.restart()
	r.publishOnce(item)
}

// restart forgets all that was not stored.
func (r *rig) restart() {
	r.t.Helper()
	raw, err := json.Marshal(r.s.Account)
	if err != nil {
		r.t.Fatal(err)
	}
	fresh := &connector.Session{Env: r.s.Env, Credential: slices.Clone(r.s.Credential)}
	if err := json.Unmarshal(raw, &fresh.Account); err != nil {
		r.t.Fatal(err)
	}
	r.c, r.s = r.New(), fresh
}
