package batch

import "sync"

// Size is how many items the next call of a kind carries out. It falls to half of a call that failed, so that what is
// too much for the time of one call is done by several, and rises to twice one that worked: at once after a single
// failure, and after up to 31 more such calls when it has failed again and again, so that a limit that lasts is tried
// seldom. It is safe for concurrent use.
type Size struct {
	Most int // also the size of the first call

	mu   sync.Mutex
	size int // 0 = Most
	// rest is how many calls must work before the next rise, and patience what it is after a failure.
	rest, patience int
}

const maxPatience = 31

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
// locked: such a call is not reported. A call that worked says something only if it had more than half of the size.
func (s *Size) Done(items int, worked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := s.next()
	switch {
	case !worked:
		s.size, s.rest = max(1, min(size, items/2)), s.patience
		s.patience = min(2*s.patience+1, maxPatience)
	case 2*items <= size:
	case s.rest > 0:
		s.rest--
	default:
		s.size = min(2*items, s.Most)
	}
	if s.size == s.Most {
		s.patience = 0
	}
}
