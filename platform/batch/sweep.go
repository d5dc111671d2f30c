package batch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"crier/platform/clock"
)

// Sweep processes all items found by a search, in batches. It is safe for concurrent use.
type Sweep[T any] struct {
	// Size is the number of items in a batch. A batch with fewer items is assumed to be the last.
	Size int
	// Find returns at most limit items in a fixed order, starting after the given item; the zero T
	// precedes all items.
	Find func(ctx context.Context, after T, limit int) ([]T, error)
	// Do processes items in transactions separate from Find's. It skips items that are locked or
	// have changed since Find read them. It returns the number of items it changed, even if it also
	// returns an error. After an error, it is called again with fewer items.
	Do func(ctx context.Context, items []T) (int, error)
	// IsItemError reports whether an item may have caused the error. Run passes it to Isolate as
	// blame.
	IsItemError func(error) bool
	// PauseFactor determines the pause after a batch, as a multiple of the batch's duration. A slow
	// database therefore gets longer pauses. The pause is at most five seconds: a batch may have
	// been slow only because statements in it timed out.
	PauseFactor int

	// last is the last item of the most recently completed batch. It is nil if the next run starts
	// from the beginning.
	last atomic.Pointer[T]
}

const maxPause = 5 * time.Second

// Run continues after the last batch of the previous run, or starts from the beginning if the
// previous run reached the end. It returns the number of items changed, even if it also returns an
// error.
//
// Run ends after the last item, when ctx ends, or at the first error that IsItemError does not
// attribute to an item. Reaching ctx's deadline is not an error; the next run continues where this
// run stopped. Run skips an item that fails on its own, and returns the first such error at the
// end.
func (s *Sweep[T]) Run(ctx context.Context) (changed int, err error) {
	failed, n := error(nil), 0
	alone := func(item T, err error) {
		n++
		if failed == nil {
			failed = fmt.Errorf("%v: %w", item, err)
		}
	}
	changed, err = s.run(ctx, alone)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = nil
	}
	if failed != nil {
		failed = fmt.Errorf("%d items could not be changed, for example %w", n, failed)
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
		}, func(err error) bool { return ctx.Err() == nil && s.IsItemError(err) }, alone)
		if err != nil {
			return changed, err
		}
		if len(found) < s.Size {
			s.last.Store(nil)
			return changed, nil
		}
		last = found[len(found)-1]
		s.last.Store(new(last))
		if err := pause(ctx, min(maxPause, time.Duration(s.PauseFactor)*(clock.Boot()-began))); err != nil {
			return changed, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
