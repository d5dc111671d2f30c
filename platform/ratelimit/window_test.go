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
			t.Fatalf("request %d: got %+v, want an admission with %d left", i+1, v, 59-i)
		}
	}
	t.Run("refuses the sixty-first until the window ends", func(t *testing.T) {
		v := w.Take(start.Add(59*time.Second+500*time.Millisecond), 60)
		if v.Allowed || v.RetryAfter != time.Second {
			t.Fatalf("got %+v, want a refusal for one second", v)
		}
		if v := w.Take(start.Add(time.Minute), 60); !v.Allowed || v.Remaining != 59 {
			t.Fatalf("in the next window: got %+v, want an admission with 59 left", v)
		}
	})
}

func TestWindow_NeverAdmitsMoreThanLimit(t *testing.T) {
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
				t.Fatalf("got reset %v at %v, want it within %v", v.Reset, now, ratelimit.Span)
			}
			if v.Allowed {
				admitted[v.Reset]++
			} else if v.RetryAfter < time.Second || now.Add(v.RetryAfter).Before(v.Reset) {
				t.Fatalf("got retry after %v at %v, want it to reach the reset %v", v.RetryAfter, now, v.Reset)
			}
			if admitted[v.Reset] > limit {
				t.Fatalf("got %d admissions in a window, want at most %d", admitted[v.Reset], limit)
			}
		}
	})
}
