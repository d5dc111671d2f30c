package worker

import (
	"testing"
	"time"

	"crier/publishing/scheduler/dispatch"
)

func TestWakeRound_IsDue(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	lease := dispatch.Lease{Shards: []int16{1, 2}}
	quick := wakeRound{lease: lease, began: began, end: began.Add(2 * time.Millisecond)}
	slow := wakeRound{lease: lease, began: began, end: began.Add(time.Second)}
	slower := wakeRound{lease: lease, began: began, end: began.Add(10 * time.Second)}
	for _, tt := range []struct {
		name  string
		last  wakeRound
		lease dispatch.Lease
		after time.Duration // time since the end of the last round
		want  bool
	}{
		{name: "the first is at once", last: wakeRound{}, lease: lease, want: true},
		{name: "a quick one comes with every sweep", last: quick, lease: lease, after: 5 * time.Second, want: true},
		{name: "a slow one rests", last: slow, lease: lease, after: 5 * time.Second, want: false},
		{name: "and comes back", last: slow, lease: lease, after: 10 * time.Second, want: true},
		{name: "however slow it was", last: slower, lease: lease, after: 15 * time.Second, want: true},
		{name: "one more shard does not wait", last: slow, lease: dispatch.Lease{Shards: []int16{1, 2, 3}}, want: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.last.isDue(tt.lease, tt.last.end.Add(tt.after)); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
