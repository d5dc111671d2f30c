package ratelimit

import (
	"sync"
	"time"
)

// Windows keeps one Window per key. It is safe for concurrent use.
//
// The cost of Take does not depend on the number of keys. Windows are kept in two generations, and
// the older generation is dropped as a whole after a Span. If the clock is then set back, a dropped
// window starts over, and its key can exceed its limit.
type Windows[K comparable] struct {
	maxKeys int

	mu    sync.Mutex
	since time.Time // start of the young generation
	young map[K]Window
	old   map[K]Window
}

// NewWindows returns a Windows that keeps up to maxKeys keys in each of its two generations. If
// more keys are used within one Span, windows are dropped early, and their keys can exceed their
// limits.
func NewWindows[K comparable](maxKeys int) *Windows[K] {
	return &Windows[K]{maxKeys: maxKeys, young: map[K]Window{}}
}

// Take counts one request for key, made at time now, against limit. The limit may differ between
// calls. A rejected request does not count.
func (s *Windows[K]) Take(key K, now time.Time, limit int) Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, known := s.young[key]
	if !known {
		s.rotate(now)
		w = s.old[key]
	}
	v := w.Take(now, limit)
	s.young[key] = w
	return v
}

// rotate begins a new generation if the young one is full or at least a Span old. It drops the
// windows that were last used before the young generation began. They have expired, unless the
// young generation filled up early.
func (s *Windows[K]) rotate(now time.Time) {
	// If the clock was set back, the generation lasts longer than a Span.
	if now.Sub(s.since) < Span && len(s.young) < s.maxKeys {
		return
	}
	s.since, s.old, s.young = now, s.young, map[K]Window{}
}

// Len returns the number of windows in memory, some of which may have expired.
func (s *Windows[K]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.young) + len(s.old)
}
