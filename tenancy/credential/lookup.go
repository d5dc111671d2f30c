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
	// lookUpTime limits a batch, including its repeats. Callers share a batch, so their contexts do
	// not end it.
	lookUpTime = 10 * time.Second
	// maxLookUps is the maximum number of hashes in one statement.
	maxLookUps = 500
	// MissPause is the delay before the next statement after one that found nothing.
	MissPause = 20 * time.Millisecond
)

// Find returns the credentials that have one of the hashes, keyed by hash. The map omits hashes
// without a credential.
type Find[V any] func(ctx context.Context, hashes [][]byte) (map[string]V, error)

// LookUps finds credentials, such as API keys or sessions, by hash. It executes one statement at a
// time; calls that arrive in the meantime share the next statement. A call never gets the result of
// a statement that began before the call, because that result may contain a credential that has
// been revoked since.
//
// The cost of guessing credentials is bounded: one statement at a time, and one in MissPause while
// nothing is found. The look-up of a valid credential waits for the running statement, one pause
// and its own statement, unless more than maxLookUps others are queued before it.
type LookUps[V any] struct {
	find Find[V]

	mu      sync.Mutex               // protects the fields below
	running bool                     // run is active
	queue   list.List                // of *lookUp[V] that have callers and are in no statement yet
	waiting map[string]*list.Element // the elements of queue by hash
}

// NewLookUps returns LookUps that use find.
func NewLookUps[V any](find Find[V]) *LookUps[V] { return &LookUps[V]{find: find} }

// lookUp is the look-up of one hash, which several callers may share.
type lookUp[V any] struct {
	hash    string
	callers int // number of waiting callers while it is queued; protected by LookUps.mu
	// done is closed when the fields below are set.
	done  chan struct{}
	value V
	found bool
	err   error
}

// Get returns the credential that has the hash; found is false if none has it. If ctx ends first,
// Get returns its error.
func (l *LookUps[V]) Get(ctx context.Context, hash []byte) (value V, found bool, err error) {
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

// enqueue adds a caller to the queued look-up of a hash. If there is none, it queues one. It starts
// run unless run is active.
func (l *LookUps[V]) enqueue(hash string) *list.Element {
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

// leave removes a caller. A queued look-up without callers is dropped, so that a database that was
// unreachable gets no statements for callers that have given up.
func (l *LookUps[V]) leave(e *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := e.Value.(*lookUp[V])
	if one.callers--; one.callers == 0 && l.waiting[one.hash] == e {
		l.take(e)
	}
}

// take removes a look-up from the queue. The caller has locked mu.
func (l *LookUps[V]) take(e *list.Element) *lookUp[V] {
	one := l.queue.Remove(e).(*lookUp[V])
	delete(l.waiting, one.hash)
	return one
}

// run executes statements until the queue is empty. At most one run is active: enqueue starts it,
// and next ends it.
func (l *LookUps[V]) run() {
	for all := l.next(); all != nil; all = l.next() {
		if l.lookUp(all) == 0 {
			time.Sleep(MissPause)
		}
	}
}

// lookUp completes all look-ups of a batch and returns the number of credentials found. A look-up
// whose row makes the statement fail gets the error alone; the others are repeated without it.
func (l *LookUps[V]) lookUp(all []*lookUp[V]) (found int) {
	ctx, cancel := context.WithTimeout(context.Background(), lookUpTime)
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

// next removes up to maxLookUps look-ups from the queue, the oldest first. It returns nil, and run
// ends, when the queue is empty.
func (l *LookUps[V]) next() (all []*lookUp[V]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(all) < maxLookUps && l.queue.Len() > 0 {
		all = append(all, l.take(l.queue.Front()))
	}
	l.running = len(all) > 0
	return all
}
