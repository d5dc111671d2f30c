//go:build !race

// The library sets a process-wide logger whenever a socket is opened, which the race detector rightly reports when one process opens two.

package org_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"crier/actors/cluster"
	"crier/actors/org"
	"crier/platform/clock"
	"crier/platform/id"
	"crier/tenancy"
)

// pair is two processes, and which of them every organization lives in.
func pair(t *testing.T, cfg org.Config) (first, second *org.Client, desks [2]*desk, home *atomic.Int32) {
	t.Helper()
	home = &atomic.Int32{}
	cfg.Budget = time.Second
	var both [2]*org.Client
	for i := range both {
		desks[i] = &desk{}
		c, err := org.New(cfg, cluster.Config{Listen: "127.0.0.1:0"}, clock.System{}, slog.New(slog.DiscardHandler), desks[i])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stop(t, c) })
		both[i] = c
	}
	for i, c := range both {
		c.Locate(func(int16) (string, bool) {
			at := int(home.Load())
			return both[at].Address(), at == i
		})
	}
	return both[0], both[1], desks, home
}

func TestOneWindowForAllProcesses(t *testing.T) {
	t.Parallel()
	first, second, _, _ := pair(t, org.Config{Limit: 4, InFlight: 1})
	mine := id.New[tenancy.OrgTag]()
	for i := range 6 {
		c := []*org.Client{first, second}[i%2]
		a := c.Admit(t.Context(), mine)
		if want := i < 4; a.Allowed != want || want && a.Remaining != 3-i {
			t.Fatalf("request %d: %+v", i+1, a)
		}
	}
	if first.Awake() != 1 || second.Awake() != 0 || second.Alone() != 0 {
		t.Fatalf("%d and %d actors", first.Awake(), second.Awake())
	}
}

func TestAWakeReachesTheOtherProcess(t *testing.T) {
	t.Parallel()
	first, second, desks, _ := pair(t, org.Config{Limit: 4, InFlight: 3})
	second.Wake(t.Context(), id.New[tenancy.OrgTag](), time.Now())
	for end := time.Now().Add(20 * time.Second); len(desks[0].seen()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came")
		}
	}
	if len(desks[1].seen()) != 0 || first.Awake() != 1 {
		t.Fatal("it woke in the wrong process")
	}
}

func TestAnOrganizationThatMovesIsFollowed(t *testing.T) {
	t.Parallel()
	first, second, _, home := pair(t, org.Config{Limit: 100, InFlight: 1})
	mine := id.New[tenancy.OrgTag]()
	for _, c := range []*org.Client{first, second} {
		if !c.Admit(t.Context(), mine).Allowed {
			t.Fatal("refused")
		}
	}
	home.Store(1)
	first.Evict()
	for _, c := range []*org.Client{first, second} {
		if a := c.Admit(t.Context(), mine); !a.Allowed {
			t.Fatalf("%+v", a)
		}
	}
	if second.Awake() != 1 || first.Alone() != 0 || second.Alone() != 0 {
		t.Fatalf("%d actors; %d and %d times alone", second.Awake(), first.Alone(), second.Alone())
	}
}

func TestAProcessThatIsGoneHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	c, err := org.New(org.Config{Limit: 2, InFlight: 1, Budget: 250 * time.Millisecond}, cluster.Config{Listen: "127.0.0.1:0"}, clock.System{}, slog.New(slog.DiscardHandler), &desk{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, c)
	c.Locate(func(int16) (string, bool) { return "127.0.0.1:1", false })
	mine := id.New[tenancy.OrgTag]()
	for i := range 3 {
		if a := c.Admit(t.Context(), mine); a.Allowed != (i < 2) {
			t.Fatalf("request %d: %+v", i+1, a)
		}
	}
	if c.Alone() != 3 {
		t.Fatal("it did not admit by itself")
	}
}
