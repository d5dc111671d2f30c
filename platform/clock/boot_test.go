package clock

import (
	"testing"
	"time"
)

// TestBoot_FollowsMonotonicClock compares the clocks that Boot uses with the monotonic clock of Go,
// which cannot be set.
func TestBoot_FollowsMonotonicClock(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func() time.Duration{
		"Boot":         Boot,
		"its fallback": func() time.Duration { return monotonic(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outer := time.Now()
			first := read()
			inner := time.Now()
			for time.Since(inner) < 5*time.Millisecond {
				if read() < first {
					t.Fatal("the clock went back")
				}
			}
			least := time.Since(inner)
			passed := read() - first
			most := time.Since(outer)
			if tolerance := time.Millisecond; passed < least-tolerance || passed > most+tolerance {
				t.Errorf("got %v passed, want between %v and %v", passed, least, most)
			}
		})
	}
}

func TestMonotonic_DoesNotFollowWallClock(t *testing.T) {
	t.Parallel()
	if got := monotonic(0); got < 0 || got > 24*time.Hour {
		t.Errorf("got %v since the start, want less than a day; the wall clock would give decades", got)
	}
	if !hasMonotonicReading(started) {
		t.Error("got a start without a monotonic reading, so time.Since uses the wall clock")
	}
}

// hasMonotonicReading compares a time with its copy without a monotonic reading.
func hasMonotonicReading(at time.Time) bool { return at != at.Round(0) }
