// Package limit limits how many callers use a shared resource, such as connections, at the same
// time. PerKey limits each key separately. Fair limits all keys together and serves them in turn.
package limit

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// PerKey is a set of semaphores, one per key, each with the same number of slots. It uses memory
// only for keys that hold or wait for a slot. It is safe for concurrent use.
type PerKey[K comparable] struct {
	perKey  int
	waiting int // how many callers may wait per key; 0 means any number

	mu   sync.Mutex
	keys map[K]*places
}

type places struct {
	free  *semaphore.Weighted
	users int // callers that hold or wait for a slot
}

// New returns a PerKey with perKey slots for each key. perKey must be at least 1. Any number of
// callers may wait for a slot.
func New[K comparable](perKey int) *PerKey[K] {
	return &PerKey[K]{perKey: perKey, keys: map[K]*places{}}
}

// NewBounded returns a PerKey with perKey slots for each key. waiting is how many callers may wait
// per key, and must be at least 1. For further callers, Enter and Take immediately return ErrFull.
func NewBounded[K comparable](perKey, waiting int) *PerKey[K] {
	l := New[K](perKey)
	l.waiting = waiting
	return l
}

// Enter waits for one of the key's slots, first come, first served. leave releases the slot and
// must be called once. If ctx ends first, Enter returns ctx's error. If the PerKey was created by
// NewBounded and too many callers are waiting, Enter returns ErrFull.
func (l *PerKey[K]) Enter(ctx context.Context, key K) (leave func(), err error) {
	return l.Take(ctx, key, 1)
}

// TryEnter is like Enter but does not wait. It returns false if none of the key's slots is free.
func (l *PerKey[K]) TryEnter(key K) (leave func(), ok bool) {
	p, err := l.join(key)
	if err != nil {
		return nil, false
	}
	if !p.free.TryAcquire(1) {
		l.release(key, p)
		return nil, false
	}
	return func() { p.free.Release(1); l.release(key, p) }, true
}

// Take is like Enter but takes n slots together, or all of the key's slots if the key has fewer
// than n. It returns the same errors as Enter.
func (l *PerKey[K]) Take(ctx context.Context, key K, n int) (leave func(), err error) {
	p, err := l.join(key)
	if err != nil {
		return nil, err
	}
	weight := int64(min(n, l.perKey))
	if err := p.free.Acquire(ctx, weight); err != nil {
		l.release(key, p)
		return nil, err
	}
	return func() { p.free.Release(weight); l.release(key, p) }, nil
}

// join registers a caller for the key. It returns ErrFull if too many callers are waiting.
func (l *PerKey[K]) join(key K) (*places, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.keys[key]
	if p == nil {
		p = &places{free: semaphore.NewWeighted(int64(l.perKey))}
		l.keys[key] = p
	}
	if l.waiting > 0 && p.users >= l.perKey+l.waiting {
		return nil, ErrFull
	}
	p.users++
	return p, nil
}

func (l *PerKey[K]) release(key K, p *places) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.users--
	if p.users == 0 {
		delete(l.keys, key)
	}
}
