package admission

import (
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"crier/platform/clock"
)

func TestThrottle_KeepsLimitOfKeys(t *testing.T) {
	t.Parallel()
	th := newThrottle(2, time.Minute, clock.Func(func() time.Time { return time.Unix(1000, 0) }))
	th.max = 50
	for i := range 1000 {
		th.take(strconv.Itoa(i))
		if len(th.counts) > th.max {
			t.Fatalf("%d keys after %d", len(th.counts), i)
		}
	}
}

// TestThrottle_MatchesSimpleCount compares random takes and waits with a simple count.
func TestThrottle_MatchesSimpleCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		now, begun, count := time.Unix(1000, 0), time.Time{}, 0
		th := newThrottle(3, time.Minute, clock.Func(func() time.Time { return now }))
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				now = now.Add(time.Duration(rapid.IntRange(1, 70).Draw(rt, "seconds")) * time.Second)
			default:
				if !now.Before(begun.Add(time.Minute)) {
					begun, count = now, 0
				}
				left, ends, ok := th.take("k")
				if ok {
					count++
				}
				if want := count <= 3 && ok || count == 3 && !ok; !want || left != 3-count || !ends.Equal(begun.Add(time.Minute)) {
					rt.Fatalf("left %d, ends %v, ok %v after %d", left, ends, ok, count)
				}
			}
		}
	})
}
