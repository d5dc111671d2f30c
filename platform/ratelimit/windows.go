package ratelimit

import (
	"sync"
	"time"
)

// Windows keeps a Window for each of many keys. What one Take costs does not depend on how many keys there are: windows
// are not searched for expired ones but kept in two generations, and the older generation is dropped as a whole when a
// span has passed. When the clock is set back after that, a dropped window begins again, and its key may take more than
// its limit. It is safe for concurrent use.
type Windows[K comparable] struct {
	most int

	mu    sync.Mutex
	since time.Time // when the young generation began
	young map[K]Window
	old   map[K]Window
}

// NewWindows makes a Windows whose generations hold up to most keys each. With more keys in one span, windows are
// dropped early, and their keys may take more than their limit.
func NewWindows[K comparable](most int) *Windows[K] {
	return &Windows[K]{most: most, young: map[K]Window{}}
}

// Take counts one request of the key against limit.
func (s *Windows[K]) Take(key K, now time.Time, limit int) Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, known := s.young[key]
	if !known {
		s.turn(now)
		w = s.old[key]
	}
	v := w.Take(now, limit)
	s.young[key] = w
	return v
}

// turn begins a new generation when the young one is a span old or full. A window that it drops was last used by the
// generation before that, and has ended unless that one was full.
func (s *Windows[K]) turn(now time.Time) {
	if now.Sub(s.since) < Span && len(s.young) < s.most { // a clock that went back makes this generation last longer
		return
	}
	s.since, s.old, s.young = now, s.young, map[K]Window{}
}

// Len is how many windows are kept, of which some may have ended.
func (s *Windows[K]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.young) + len(s.old)
}
