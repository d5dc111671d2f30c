package worker

import (
	"testing"
	"time"

	"crier/publishing"
)

func TestWakeRound_IsDue(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	lease := publishing.Lease{Shards: []int16{1, 2}}
	quick, slow, slower := wakeRound{lease, began, began.Add(2 * time.Millisecond)}, wakeRound{lease, began, began.Add(time.Second)}, wakeRound{lease, began, began.Add(10 * time.Second)}
	for _, tt := range []struct {
		name  string
		last  wakeRound
		lease publishing.Lease
		after time.Duration // the end of the last round
		want  bool
	}{
		{"the first is at once", wakeRound{}, lease, 0, true},
		{"a quick one comes with every sweep", quick, lease, 5 * time.Second, true},
		{"a slow one rests", slow, lease, 5 * time.Second, false},
		{"and comes back", slow, lease, 10 * time.Second, true},
		{"however slow it was", slower, lease, 15 * time.Second, true},
		{"one more shard does not wait", slow, publishing.Lease{Shards: []int16{1, 2, 3}}, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.last.isDue(tt.lease, tt.last.end.Add(tt.after)); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
