package batch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crier/platform/clock"
)

// Sweep is work on all items that a search finds, batch by batch.
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
}

const maxRest = 5 * time.Second

// Run goes through all items once and returns how many were changed, also with an error. An item that fails by itself
// is left out and does not stop the others: the first such error is returned when all have been tried. Run ends at the
// first error that no item is to blame for, and when ctx ends.
func (s Sweep[T]) Run(ctx context.Context) (changed int, err error) {
	failed, n := error(nil), 0
	alone := func(item T, err error) {
		if n++; failed == nil {
			failed = fmt.Errorf("%v: %w", item, err)
		}
	}
	changed, err = s.run(ctx, alone)
	if failed != nil {
		failed = fmt.Errorf("%d could not be changed, such as %w", n, failed)
	}
	return changed, errors.Join(err, failed)
}

func (s Sweep[T]) run(ctx context.Context, alone func(T, error)) (changed int, err error) {
	var last T
	for {
		began := clock.Boot()
		found, err := s.Find(ctx, last, s.Size)
		if err != nil || len(found) == 0 {
			return changed, errors.Join(err, ctx.Err())
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
			return changed, nil
		}
		last = found[len(found)-1]
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
