package credential

import (
	"container/list"
	"context"
	"sync"
	"time"

	"crier/platform/batch"
	"crier/platform/pg"
)

const (
	// lookupTimeout is the time limit for a batch of lookups, including retries. Several callers
	// share a batch, so the batch continues even if one caller's context ends.
	lookupTimeout = 10 * time.Second
	// maxLookups is the maximum number of hashes in one statement.
	maxLookups = 500
	// MissPause is the pause after a statement that found no credentials.
	MissPause = 20 * time.Millisecond
)

// Find returns the credentials with the given hashes, keyed by hash. The map has no entry for a
// hash that matches no credential.
type Find[V any] func(ctx context.Context, hashes [][]byte) (map[string]V, error)

// Lookups finds credentials, such as API keys or sessions, by hash. It executes one statement at a
// time. Calls that arrive while a statement is running share the next statement. They never receive
// the result of the running statement, because a credential in that result may have been revoked
// since.
//
// Lookups also limits the load that guessing credentials can cause. Only one statement runs at a
// time, and while no credentials are found, at most one statement runs per MissPause.
//
// The lookup of a valid credential waits at most for the running statement, one pause and its own
// statement. It can wait longer if at least maxLookups other lookups are ahead of it in the queue.
type Lookups[V any] struct {
	find Find[V]

	mu      sync.Mutex               // protects the fields below
	running bool                     // run is active
	queue   list.List                // *lookUp[V] values that have callers and are in no statement yet
	waiting map[string]*list.Element // the queue's elements, by hash
}

// NewLookups returns a Lookups that uses find.
func NewLookups[V any](find Find[V]) *Lookups[V] { return &Lookups[V]{find: find} }

// lookUp is a lookup of one hash. Several callers can share it.
type lookUp[V any] struct {
	hash    string
	callers int // number of waiting callers while queued; protected by Lookups.mu
	// done is closed once the fields below have been set.
	done  chan struct{}
	value V
	found bool
	err   error
}

// Get returns the credential with the given hash; found is false if there is none. If ctx ends
// first, Get returns ctx.Err().
func (l *Lookups[V]) Get(ctx context.Context, hash []byte) (value V, found bool, err error) {
	e := l.enqueue(string(hash))
	one := e.Value.(*lookUp[V])
	select {
	case <-one.done:
		return one.value, one.found, one.err
	case <-ctx.Done():
		l.leave(e)
		return value, false, ctx.Err()
	}
}

// enqueue adds a caller to the queued lookup for a hash. If there is none, it queues a new lookup.
// It starts run unless run is already active.
func (l *Lookups[V]) enqueue(hash string) *list.Element {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.waiting[hash]
	if !ok {
		if l.waiting == nil {
			l.waiting = map[string]*list.Element{}
		}
		e = l.queue.PushBack(&lookUp[V]{hash: hash, done: make(chan struct{})})
		l.waiting[hash] = e
	}
	e.Value.(*lookUp[V]).callers++
	if !l.running {
		l.running = true
		go l.run()
	}
	return e
}

// leave removes a caller from a lookup. If the lookup is still queued and has no callers left,
// leave removes it from the queue. Otherwise, a database that becomes reachable again would have to
// handle lookups that nobody is waiting for.
func (l *Lookups[V]) leave(e *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := e.Value.(*lookUp[V])
	if one.callers--; one.callers == 0 && l.waiting[one.hash] == e {
		l.take(e)
	}
}

// take removes a lookup from the queue. The caller must hold mu.
func (l *Lookups[V]) take(e *list.Element) *lookUp[V] {
	one := l.queue.Remove(e).(*lookUp[V])
	delete(l.waiting, one.hash)
	return one
}

// run executes statements until the queue is empty. At most one run is active at a time. enqueue
// starts it, and it ends when next finds the queue empty.
func (l *Lookups[V]) run() {
	for all := l.next(); all != nil; all = l.next() {
		if l.lookUp(all) == 0 {
			time.Sleep(MissPause)
		}
	}
}

// lookUp completes all lookups in a batch and returns the number of credentials found. If one
// lookup makes the statement fail, that lookup receives the error, and the others are retried
// without it.
func (l *Lookups[V]) lookUp(all []*lookUp[V]) (found int) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	refuse := func(one *lookUp[V], err error) { one.err = err; close(one.done) }
	left, err := batch.Isolate(all, func(some []*lookUp[V]) error {
		hashes := make([][]byte, len(some))
		for i, one := range some {
			hashes[i] = []byte(one.hash)
		}
		values, err := l.find(ctx, hashes)
		if err != nil {
			return err
		}
		found += len(values)
		for _, one := range some {
			one.value, one.found = values[one.hash]
			close(one.done)
		}
		return nil
	}, func(err error) bool { return !pg.IsEnvironment(err) }, refuse)
	for _, one := range left {
		refuse(one, err)
	}
	return found
}

// next removes up to maxLookups lookups from the queue, oldest first. If the queue is empty, next
// returns nil and run ends.
func (l *Lookups[V]) next() (all []*lookUp[V]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(all) < maxLookups && l.queue.Len() > 0 {
		all = append(all, l.take(l.queue.Front()))
	}
	l.running = len(all) > 0
	return all
}
