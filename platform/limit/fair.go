package limit

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrFull is returned immediately by Enter and Take if the maximum number of callers is already
// waiting for the key.
var ErrFull = errors.New("too many are waiting")

// Fair is a semaphore whose slots are shared by all keys. Waiting keys get free slots in turn, and
// within a key the caller that has waited longest goes first. Between two slots for the same key,
// each other key gets at most one slot, regardless of how many of its callers are waiting.
//
// Fair uses memory only for waiting keys. It is safe for concurrent use.
type Fair[K comparable] struct {
	maxWaiting int // callers per key

	mu      sync.Mutex
	free    int
	turns   []K                   // waiting keys, each once, in the order in which they get slots
	waiting map[K][]chan struct{} // callers in order of arrival; closing a channel grants a slot
}

// NewFair returns a Fair with the given number of slots. waiting is how many callers may wait per
// key.
func NewFair[K comparable](places, waiting int) *Fair[K] {
	return &Fair[K]{free: places, maxWaiting: waiting, waiting: map[K][]chan struct{}{}}
}

// Enter waits for a slot. leave releases the slot and must be called once. If too many callers with
// the same key are already waiting, Enter immediately returns ErrFull. If ctx ends first, Enter
// returns ctx's error.
func (f *Fair[K]) Enter(ctx context.Context, key K) (leave func(), err error) {
	place, err := f.join(key)
	if err != nil {
		return nil, err
	}
	select {
	case <-place:
	case <-ctx.Done():
		if f.abandon(key, place) {
			return nil, ctx.Err()
		}
	}
	return f.leave, nil
}

// join takes a free slot or begins to wait for one. It returns a channel that is closed once the
// caller has a slot.
func (f *Fair[K]) join(key K) (chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	users := f.waiting[key]
	place := make(chan struct{})
	switch {
	case f.free > 0: // implies that no caller is waiting
		f.free--
		close(place)
		return place, nil
	case len(users) >= f.maxWaiting:
		return nil, ErrFull
	case len(users) == 0:
		f.turns = append(f.turns, key)
	}
	f.waiting[key] = append(users, place)
	return place, nil
}

// abandon removes a caller that has stopped waiting. It returns false if the caller has received a
// slot in the meantime.
func (f *Fair[K]) abandon(key K, place chan struct{}) bool {
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

// leave passes the slot to the caller whose turn it is. No slot is free while a caller waits, so
// newcomers cannot overtake.
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
	f.waiting[key] = f.waiting[key][1:]
	if len(f.waiting[key]) > 0 {
		f.turns = append(f.turns, key)
	} else {
		delete(f.waiting, key)
	}
}
