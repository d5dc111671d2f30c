package batch

import "sync"

// Size adapts the number of items per call to the results of earlier calls. After a failed call,
// the size drops to half the number of items in that call. Work that takes too long for one call is
// thus spread over several. After a successful call, the size rises to twice the number of items in
// that call.
//
// After a single failure, the first successful call raises the size again. After repeated failures,
// up to 31 successful calls must come first, so that a permanent limit is rarely exceeded. Size is
// safe for concurrent use.
type Size struct {
	// Max is the maximum size, and the size of the first call.
	Max int

	mu   sync.Mutex
	size int // 0 means Max
	// rest is how many calls must succeed before the next rise. patience is the value that rest
	// gets after the next failure.
	rest, patience int
}

const maxPatience = 31

// Next returns the size of the next call, from 1 to Max.
func (s *Size) Next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next()
}

func (s *Size) next() int {
	if s.size == 0 {
		return s.Max
	}
	return s.size
}

// Done records a call with the given number of items. Do not report a call in which an item was
// refused or locked, because that kind of failure does not depend on the size. A successful call
// has an effect only if it had more than half as many items as the current size.
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
		s.size = min(2*items, s.Max)
	}
	if s.size == s.Max {
		s.patience = 0
	}
}
