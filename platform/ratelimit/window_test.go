package ratelimit_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"crier/platform/ratelimit"
)

func TestTake(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var w ratelimit.Window
	for i := range 60 {
		v := w.Take(start.Add(time.Duration(i)*time.Millisecond), 60)
		if !v.Allowed || v.Remaining != 59-i || !v.Reset.Equal(start.Add(time.Minute)) {
			t.Fatalf("request %d: %+v", i+1, v)
		}
	}
	t.Run("refuses the sixty-first until the window ends", func(t *testing.T) {
		v := w.Take(start.Add(59*time.Second+500*time.Millisecond), 60)
		if v.Allowed || v.RetryAfter != time.Second {
			t.Fatalf("%+v", v)
		}
		if v := w.Take(start.Add(time.Minute), 60); !v.Allowed || v.Remaining != 59 {
			t.Fatalf("%+v", v)
		}
	})
}

func TestNeverMoreThanTheLimitInAWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 20).Draw(t, "limit")
		steps := rapid.SliceOfN(rapid.IntRange(0, 5000), 1, 200).Draw(t, "milliseconds between requests")
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var w ratelimit.Window
		admitted := map[time.Time]int{}
		for _, ms := range steps {
			now = now.Add(time.Duration(ms) * time.Millisecond)
			v := w.Take(now, limit)
			if !v.Reset.After(now) || v.Reset.Sub(now) > ratelimit.Span {
				t.Fatalf("reset %v at %v", v.Reset, now)
			}
			if v.Allowed {
				admitted[v.Reset]++
			} else if v.RetryAfter < time.Second || now.Add(v.RetryAfter).Before(v.Reset) {
				t.Fatalf("retry after %v does not reach the reset", v.RetryAfter)
			}
			if admitted[v.Reset] > limit {
				t.Fatalf("%d admitted of %d", admitted[v.Reset], limit)
			}
		}
	})
}
