package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"crier/platform/ratelimit"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestWindows_ExpiredWindowsAreDroppedTogether(t *testing.T) {
	t.Parallel()
	w := ratelimit.NewWindows[int](100_000)
	for key := range 64_000 {
		w.Take(key, start, 3)
	}
	// If windows were dropped one at a time, the cost of a Take would depend on their number.
	if w.Take(-1, start.Add(ratelimit.Span), 3); w.Len() != 64_001 {
		t.Errorf("got %d windows after the first request of the next span, want 64001", w.Len())
	}
	if w.Take(-2, start.Add(2*ratelimit.Span), 3); w.Len() != 2 {
		t.Errorf("got %d windows a span later, want 2", w.Len())
	}
}

func TestWindows_NumberIsBounded(t *testing.T) {
	t.Parallel()
	w := ratelimit.NewWindows[int](100)
	for key := range 10_000 {
		if v := w.Take(key, start, 3); !v.Allowed || v.Remaining != 2 {
			t.Fatalf("the first request of key %d: got %+v, want an admission with 2 left", key, v)
		}
		if w.Len() > 200 {
			t.Fatalf("got %d windows, want at most 200", w.Len())
		}
	}
}

func TestWindows_DecideAsOneWindowForEachKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := ratelimit.NewWindows[int](10)
		alone := map[int]*ratelimit.Window{}
		now := start
		for range rapid.IntRange(1, 300).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "milliseconds later")) * time.Millisecond)
			key := rapid.IntRange(0, 9).Draw(t, "key")
			if alone[key] == nil {
				alone[key] = &ratelimit.Window{}
			}
			if got, want := w.Take(key, now, 4), alone[key].Take(now, 4); got != want {
				t.Fatalf("key %d at %s: got %+v, want %+v", key, now, got, want)
			}
		}
	})
}

func BenchmarkWindows_Take(b *testing.B) {
	for _, keys := range []int{2_000, 64_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			w := ratelimit.NewWindows[int](1 << 17)
			for key := range keys {
				w.Take(key, start, 60)
			}
			now := start
			for i := range b.N {
				now = now.Add(time.Millisecond)
				w.Take(i%keys, now, 60)
			}
		})
	}
}
