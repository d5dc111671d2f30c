package ratelimit

import (
	"sync"
	"time"
)

// Windows keeps a Window for each of many keys. It is safe for concurrent use.
//
// The cost of Take does not depend on the number of keys: windows are kept in two generations, and
// the older one is dropped as a whole after a Span. If the clock is set back after that, a dropped
// window starts again and its key may take more than its limit.
type Windows[K comparable] struct {
	maxKeys int

	mu    sync.Mutex
	since time.Time // start of the young generation
	young map[K]Window
	old   map[K]Window
}

// NewWindows returns a Windows that keeps up to maxKeys keys in each of its two generations. If
// more keys are used within one Span, windows are dropped early and their keys may take more than
// their limit.
func NewWindows[K comparable](maxKeys int) *Windows[K] {
	return &Windows[K]{maxKeys: maxKeys, young: map[K]Window{}}
}

// Take counts one request of the key at now against limit, which may differ between calls. A
// refused request does not count.
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

// rotate begins a new generation if the young one is a Span old or full. The windows that it drops
// were last used in the generation before the young one, and have expired unless the young one was
// full.
func (s *Windows[K]) rotate(now time.Time) {
	// The generation lasts longer than a Span if the clock was set back.
	if now.Sub(s.since) < Span && len(s.young) < s.maxKeys {
		return
	}
	s.since, s.old, s.young = now, s.young, map[K]Window{}
}

// Len returns the number of windows that are kept, some of which may have expired.
func (s *Windows[K]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.young) + len(s.old)
}
