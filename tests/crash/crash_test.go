package main

import (
	"testing"
	"time"
)

// TestRun_NothingLostOrTwice makes a short run; `go run ./tests/crash` makes the long one.
func TestRun_NothingLostOrTwice(t *testing.T) {
	t.Parallel()
	v, err := run(t.Context(), settings{
		Faults: 12, Posts: 300, Nodes: 2, Seed: 50, Pace: 1500 * time.Millisecond, Ahead: 2 * time.Second,
		Window: 45 * time.Second,
	}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if !v.clean() || v.Faults != 12 || v.Posts != 300 || v.InFlight == 0 || len(v.Hit) != 3 {
		t.Fatalf("got %+v, want 12 faults, 300 posts, 3 kinds of drills and no findings", v)
	}
}
