package batch

import "sync"

// Size is how many items the next call of a kind carries out. It falls to half of a call that failed and rises to
// twice one that worked, so that what is too much for the time of one call is done by several. It is safe for
// concurrent use.
type Size struct {
	Most int // also the size of the first call

	mu   sync.Mutex
	size int // 0 = Most
}

// Next returns from 1 to Most.
func (s *Size) Next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next()
}

func (s *Size) next() int {
	if s.size == 0 {
		return s.Most
	}
	return s.size
}

// Done says how a call of so many items ended. Any failure may be due to the size, except that an item is refused or
// locked: such a call is not reported.
func (s *Size) Done(items int, worked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if worked {
		s.size = max(s.next(), min(2*items, s.Most))
	} else {
		s.size = max(1, min(s.next(), items/2))
	}
}
