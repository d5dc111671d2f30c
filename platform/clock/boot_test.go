package clock

import (
	"testing"
	"time"
)

// The clocks that Boot uses are compared with the monotonic clock of Go, which no setting of the wall clock moves.
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
			if slack := time.Millisecond; passed < least-slack || passed > most+slack {
				t.Errorf("%v passed, want between %v and %v", passed, least, most)
			}
		})
	}
}

func TestMonotonic_IsNotTheWallClock(t *testing.T) {
	t.Parallel()
	if got := monotonic(0); got < 0 || got > 24*time.Hour {
		t.Errorf("the process has run for %v; a reading of the wall clock would be decades", got)
	}
	if !hasMonotonicReading(started) {
		t.Error("the start has no monotonic reading, so time.Since would use the wall clock")
	}
}

// hasMonotonicReading compares a time with its copy without that reading.
func hasMonotonicReading(at time.Time) bool { return at != at.Round(0) }
