package admission

import (
	"sync"
	"time"

	"crier/platform/clock"
)

const (
	sessionWindow   = time.Minute // see AppLimit in the edge's Config
	maxThrottleKeys = 100_000     // keys in one throttle
)

// throttle limits how many requests each key may make in a fixed window. It keeps the counts in
// memory. If it has too many keys, it forgets the keys whose windows have ended and then, if
// necessary, arbitrary other keys. It is safe for concurrent use.
type throttle struct {
	limit int           // requests in a window
	every time.Duration // length of a window
	clock clock.Clock
	max   int // keys

	mu     sync.Mutex // protects the fields below
	counts map[string]window
}

type window struct {
	count int
	ends  time.Time
}

func newThrottle(limit int, every time.Duration, c clock.Clock) *throttle {
	return &throttle{limit: limit, every: every, clock: c, max: maxThrottleKeys, counts: map[string]window{}}
}

// take counts a request for a key. It returns how many requests are left in the window and when the
// window ends. If the limit has already been reached, ok is false and the request is not counted.
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

// forget removes the keys whose windows have ended. If less than a tenth of max is then free, it
// also removes other keys until a tenth is free.
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
