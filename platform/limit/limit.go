// Package limit divides what all share, such as connections, so that no user of it has more than a part.
package limit

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// PerKey has a number of places for each key. It remembers only keys that have a place or wait for one. It is safe for
// concurrent use.
type PerKey[K comparable] struct {
	most    int
	waiting int // beside as many users as there are places; 0 = any number

	mu   sync.Mutex
	keys map[K]*places
}

type places struct {
	free  *semaphore.Weighted
	users int // those that have a place, and those that wait
}

// New returns a PerKey of most places a key.
func New[K comparable](most int) *PerKey[K] {
	return &PerKey[K]{most: most, keys: map[K]*places{}}
}

// NewBounded returns a PerKey of most places a key, which most+waiting users of a key may have or wait for; waiting is at
// least 1. The next user gets ErrFull at once.
func NewBounded[K comparable](most, waiting int) *PerKey[K] {
	l := New[K](most)
	l.waiting = waiting
	return l
}

// Enter waits for a place of the key, behind those that waited before. leave gives the place back and must be called once.
// When ctx ends first, its error is returned.
func (l *PerKey[K]) Enter(ctx context.Context, key K) (leave func(), err error) {
	return l.Take(ctx, key, 1)
}

// Take is Enter for n places at once. More than the key has count as all of them.
func (l *PerKey[K]) Take(ctx context.Context, key K, n int) (leave func(), err error) {
	p, err := l.join(key)
	if err != nil {
		return nil, err
	}
	weight := int64(min(n, l.most))
	if err := p.free.Acquire(ctx, weight); err != nil {
		l.part(key, p)
		return nil, err
	}
	return func() { p.free.Release(weight); l.part(key, p) }, nil
}

func (l *PerKey[K]) join(key K) (*places, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.keys[key]
	if p == nil {
		p = &places{free: semaphore.NewWeighted(int64(l.most))}
		l.keys[key] = p
	}
	if l.waiting > 0 && p.users >= l.most+l.waiting {
		return nil, ErrFull
	}
	p.users++
	return p, nil
}

func (l *PerKey[K]) part(key K, p *places) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(l.keys, key)
	}
}
