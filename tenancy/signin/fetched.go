package signin

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"crier/platform/clock"
)

// maxAge is how long fetched metadata and keys are used. A key that the issuer has withdrawn is no
// longer accepted after that time.
const maxAge = time.Hour

// fetching configures how documents are fetched.
type fetching struct {
	clock clock.Clock
	limit time.Duration // for one fetch
}

// fetched is a document published by an issuer. It is fetched when it is first needed, and again
// after maxAge or a failure. Concurrent callers share one fetch.
type fetched[T any] struct {
	fetching
	fetch  func(ctx context.Context) (T, error)
	flight singleflight.Group

	mu    sync.Mutex
	value T
	at    time.Time // zero if never fetched
}

// get returns the document. If the stored document is missing or older than maxAge, get fetches it
// first. If ctx ends during the fetch, get returns ctx.Err().
func (f *fetched[T]) get(ctx context.Context) (T, error) {
	if value, ok := f.fresh(); ok {
		return value, nil
	}
	return f.share(ctx, func(ctx context.Context) (T, error) {
		if value, ok := f.fresh(); ok { // another fetch finished in the meantime
			return value, nil
		}
		return f.fetch(ctx)
	})
}

// fresh returns the stored document. ok is false if the document is too old or was never fetched.
func (f *fetched[T]) fresh() (value T, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	age := f.clock.Now().Sub(f.at)
	return f.value, !f.at.IsZero() && age >= 0 && age < maxAge
}

// refresh fetches the document even if it is fresh.
func (f *fetched[T]) refresh(ctx context.Context) (T, error) { return f.share(ctx, f.fetch) }

// share runs fetch, or waits for a fetch that is already in progress. A fetch has its own time
// limit and continues after ctx ends, because other callers may be waiting for it.
func (f *fetched[T]) share(ctx context.Context, fetch func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := f.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.limit)
		defer cancel()
		value, err := fetch(ctx)
		if err != nil {
			return result{err: err}, nil
		}
		f.store(value)
		return result{value: value}, nil
	})
	select {
	case got := <-done:
		r, _ := got.Val.(result)
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (f *fetched[T]) store(value T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.value, f.at = value, f.clock.Now()
}
