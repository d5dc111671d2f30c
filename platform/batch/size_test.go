package batch_test

import (
	"testing"

	"crier/platform/batch"
)

func TestSize_FollowsResultsOfCalls(t *testing.T) {
	t.Parallel()
	s := batch.Size{Max: 100}
	for i, step := range []struct {
		items  int
		worked bool
		want   int
	}{
		{items: 100, worked: true, want: 100},
		{items: 1, worked: true, want: 100}, // a small call does not count
		{items: 100, worked: false, want: 50},
		{items: 50, worked: true, want: 100}, // rises at once after a single failure
		{items: 100, worked: false, want: 50},
		{items: 7, worked: false, want: 3},
		{items: 40, worked: false, want: 3},
		{items: 3, worked: false, want: 1},
		{items: 1, worked: false, want: 1},
	} {
		if s.Done(step.items, step.worked); s.Next() != step.want {
			t.Errorf("step %d: after a call of %d, worked %t, the size is %d, want %d", i, step.items, step.worked, s.Next(), step.want)
		}
	}
	for range 15 {
		if s.Done(1, true); s.Next() != 1 {
			t.Fatalf("the size is %d too soon after many failures, want 1", s.Next())
		}
	}
	for _, want := range []int{2, 4, 8, 16, 32, 64, 100} {
		if s.Done(s.Next(), true); s.Next() != want {
			t.Fatalf("the size is %d, want %d", s.Next(), want)
		}
	}
}

func TestSize_SeldomTriesLastingLimit(t *testing.T) {
	t.Parallel()
	s := batch.Size{Max: 512}
	failed := 0
	for range 1000 {
		n := s.Next()
		if n > 100 {
			failed++
		}
		s.Done(n, n <= 100)
	}
	if failed > 1000/16 {
		t.Errorf("%d of 1000 calls were too large, want at most %d", failed, 1000/16)
	}
}
