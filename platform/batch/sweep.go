package batch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"crier/platform/clock"
)

// Sweep is work on all items that a search finds, batch by batch. It is safe for concurrent use.
type Sweep[T any] struct {
	Size int // of a batch
	// Find lists at most limit items in a fixed order, those after another one; the zero T comes before all.
	Find func(ctx context.Context, after T, limit int) ([]T, error)
	// Do works on items in transactions of its own and returns how many it changed, also with an error. What is not as
	// Find saw it any more, or is locked, it leaves out. After an error it is called again with fewer items.
	Do func(ctx context.Context, items []T) (int, error)
	// Blame says whether an item may be the cause of an error, as for Isolate.
	Blame func(error) bool
	// Rest is the pause after a batch, in multiples of the time that the batch took, so that a database that is slow
	// gets more of it. It is five seconds at most: a batch that took long may consist of statements that timed out.
	Rest int

	// last is the last item of the last batch that was done; nil after the end.
	last atomic.Pointer[T]
}

const maxRest = 5 * time.Second

// Run goes on after the last batch of the run before it, or begins with the first item when that came to the end, and
// returns how many items were changed, also with an error. It ends with the last item, when ctx ends, and at the first
// error that no item is to blame for. That the deadline of ctx has passed is no error: the next run does the rest. An
// item that fails by itself is left out and does not stop the others: the first such error is returned at the end.
func (s *Sweep[T]) Run(ctx context.Context) (changed int, err error) {
	failed, n := error(nil), 0
	alone := func(item T, err error) {
		if n++; failed == nil {
			failed = fmt.Errorf("%v: %w", item, err)
		}
	}
	changed, err = s.run(ctx, alone)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = nil
	}
	if failed != nil {
		failed = fmt.Errorf("%d could not be changed, such as %w", n, failed)
	}
	return changed, errors.Join(err, failed)
}

func (s *Sweep[T]) run(ctx context.Context, alone func(T, error)) (changed int, err error) {
	var last T
	if p := s.last.Load(); p != nil {
		last = *p
	}
	for {
		began := clock.Boot()
		found, err := s.Find(ctx, last, s.Size)
		if err != nil {
			return changed, errors.Join(err, ctx.Err())
		}
		if len(found) == 0 {
			s.last.Store(nil)
			return changed, ctx.Err()
		}
		_, err = Isolate(found, func(items []T) error {
			n, err := s.Do(ctx, items)
			changed += n
			return errors.Join(err, ctx.Err())
		}, func(err error) bool { return ctx.Err() == nil && s.Blame(err) }, alone)
		if err != nil {
			return changed, err
		}
		if len(found) < s.Size {
			s.last.Store(nil)
			return changed, nil
		}
		last = found[len(found)-1]
		s.last.Store(new(last))
		if err := rest(ctx, min(maxRest, time.Duration(s.Rest)*(clock.Boot()-began))); err != nil {
			return changed, err
		}
	}
}

func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
