package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"crier/platform/clock"
	"crier/publishing/connector"
)

// crash simulates an engine crash after every step. After each crash, it continues with a new
// connector and the stored data.
func (s Suite) crash(t *testing.T) {
	steps := s.countSteps(t)
	for n := range steps + 1 {
		t.Run(fmt.Sprintf("after %d stored steps is one post", n), func(t *testing.T) { s.crashAfter(t, n, false) })
	}
	for n := range steps {
		t.Run(fmt.Sprintf("before step %d is stored is one post", n+1), func(t *testing.T) { s.crashAfter(t, n, true) })
	}
	t.Run("between the mark and the commit is at most one post", func(t *testing.T) {
		r := s.onShared(t)
		item := r.prepare(r.itemWithMedia())
		item.Committing = r.s.Clock.Now()
		r.restart()
		r.settle(item, false)
	})
	t.Run("after the commit is one post", func(t *testing.T) {
		r := s.onShared(t)
		item := r.prepare(r.itemWithMedia())
		if _, err := r.commit(&item); err != nil {
			t.Fatalf("Commit: %v", err)
		}
		r.restart()
		r.settle(item, true)
		r.want(1, item)
	})
	t.Run("in a reply after the commit is one post", func(t *testing.T) {
		r := s.onShared(t)
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

// countSteps returns how many calls to Prepare an item needs.
func (s Suite) countSteps(t *testing.T) int {
	t.Helper()
	r := s.onShared(t)
	counter := &counted{Connector: watched{Connector: r.c, r: r}}
	if _, err := Prepare(t.Context(), counter, r.s, r.itemWithMedia()); err != nil {
		t.Fatalf("Prepare: %v", err)
	}
	return counter.steps
}

// crashAfter runs n steps and stores each result. If lose is true, it runs one more step and
// discards the result. It then simulates a restart and publishes the item.
func (s Suite) crashAfter(t *testing.T, n int, lose bool) {
	r := s.onShared(t)
	item := r.itemWithMedia()
	for range n {
		step, err := watched{Connector: r.c, r: r}.Prepare(t.Context(), r.s, item)
		if err != nil {
			t.Fatalf("Prepare: %v", err)
		}
		item.Handle, err = store(step.Handle)
		if err != nil {
			t.Fatalf("the handle cannot be stored: %v", err)
		}
		if err := clock.Sleep(t.Context(), min(step.Wait, maxWait)); err != nil {
			t.Fatal(err)
		}
	}
	if lose {
		if _, err := (watched{Connector: r.c, r: r}).Prepare(t.Context(), r.s, item); err != nil {
			t.Fatalf("Prepare: %v", err)
		}
	}
	r.restart()
	r.publishOnce(item)
}

// restart replaces the connector and the session with new ones built from stored data.
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
