package limit

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrFull is returned when as many users of a key wait as may.
var ErrFull = errors.New("too many wait")

// Fair has a number of places for all keys together. The keys for which users wait get the free places in turn, and of a
// key the user that has waited longest gets the place: before a key gets its next place, each other key gets one at most,
// however many of its users wait. It remembers only keys for which users wait. It is safe for concurrent use.
type Fair[K comparable] struct {
	most int // users of a key that wait

	mu      sync.Mutex
	free    int
	turns   []K                   // keys that wait, each once, in the order in which they get the next places
	waiting map[K][]chan struct{} // users of these, in the order in which they came; closed when the user has a place
}

// NewFair returns a Fair of so many places, for which at most so many users of each key wait.
func NewFair[K comparable](places, waiting int) *Fair[K] {
	return &Fair[K]{free: places, most: waiting, waiting: map[K][]chan struct{}{}}
}

// Enter waits for a place. leave gives it back and must be called once. When most users of the key wait already, ErrFull
// is returned at once; when ctx ends first, its error is.
func (f *Fair[K]) Enter(ctx context.Context, key K) (leave func(), err error) {
	place, err := f.join(key)
	if err != nil {
		return nil, err
	}
	select {
	case <-place:
	case <-ctx.Done():
		if f.part(key, place) {
			return nil, ctx.Err()
		}
	}
	return f.leave, nil
}

// join returns what is closed when the user has a place.
func (f *Fair[K]) join(key K) (place chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	users := f.waiting[key]
	place = make(chan struct{})
	switch {
	case f.free > 0: // then nobody waits
		f.free--
		close(place)
		return place, nil
	case len(users) >= f.most:
		return nil, ErrFull
	case len(users) == 0:
		f.turns = append(f.turns, key)
	}
	f.waiting[key] = append(users, place)
	return place, nil
}

// part removes a user who does not wait any longer. It returns false when the user has got a place meanwhile.
func (f *Fair[K]) part(key K, place chan struct{}) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.waiting[key], place)
	if i < 0 {
		return false
	}
	f.waiting[key] = slices.Delete(f.waiting[key], i, i+1)
	if len(f.waiting[key]) == 0 {
		f.turns = slices.DeleteFunc(f.turns, func(k K) bool { return k == key })
		delete(f.waiting, key)
	}
	return true
}

// leave gives a place to the user whose turn it is.
func (f *Fair[K]) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.turns) == 0 {
		f.free++
		return
	}
	key := f.turns[0]
	f.turns = f.turns[1:]
	close(f.waiting[key][0])
	if f.waiting[key] = f.waiting[key][1:]; len(f.waiting[key]) > 0 {
		f.turns = append(f.turns, key)
	} else {
		delete(f.waiting, key)
	}
}
