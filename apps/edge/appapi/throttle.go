package appapi

import (
	"sync"
	"time"

	"crier/platform/clock"
)

// How often a session may ask.
const (
	sessionWindow = time.Minute
	maxWatched    = 100_000 // keys of one throttle
)

// throttle counts per key in fixed windows, in memory. When it watches too many keys at once, those whose window is over go first, then any.
type throttle struct {
	limit int
	every time.Duration
	clock clock.Clock
	max   int

	mu     sync.Mutex
	counts map[string]window
}

type window struct {
	count int
	ends  time.Time
}

func newThrottle(limit int, every time.Duration, c clock.Clock) *throttle {
	return &throttle{limit: limit, every: every, clock: c, max: maxWatched, counts: map[string]window{}}
}

// take counts one; ok is false when the key has none left. Refused ones do not count.
func (t *throttle) take(key string) (left int, ends time.Time, ok bool) {
	now := t.clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	w, known := t.counts[key]
	if !known || !now.Before(w.ends) {
		if !known && len(t.counts) >= t.max {
			t.forget(now)
		}
		w = window{ends: now.Add(t.every)}
	}
	if w.count >= t.limit {
		return 0, w.ends, false
	}
	w.count++
	t.counts[key] = w
	return t.limit - w.count, w.ends, true
}

// forget makes room for at least one key.
func (t *throttle) forget(now time.Time) {
	for key, w := range t.counts {
		if !now.Before(w.ends) {
			delete(t.counts, key)
		}
	}
	for key := range t.counts {
		if len(t.counts) <= t.max-t.max/10-1 {
			return
		}
		delete(t.counts, key)
	}
}
