package batch_test

import (
	"testing"

	"crier/platform/batch"
)

func TestSize_FollowsWhatCallsTake(t *testing.T) {
	t.Parallel()
	s := batch.Size{Most: 100}
	for i, step := range []struct {
		items  int
		worked bool
		want   int
	}{
		{100, true, 100}, {100, false, 50}, {7, false, 3}, {40, false, 3}, {3, false, 1}, {1, false, 1},
		{1, true, 2}, {1, true, 2}, {2, true, 4}, {4, true, 8}, {90, true, 100},
	} {
		if s.Done(step.items, step.worked); s.Next() != step.want {
			t.Errorf("step %d: after a call of %d, worked %t, the size is %d, want %d", i, step.items, step.worked, s.Next(), step.want)
		}
	}
}
