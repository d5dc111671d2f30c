package service

import (
	"container/list"
	"context"
	"sync"
	"time"

	"crier/platform/batch"
	"crier/platform/pg"
)

const (
	lookUpTime = 10 * time.Second // of one statement
	maxLookUps = 500              // hashes in one statement

	// missPause is how long after a statement that found nothing the next one begins.
	missPause = 20 * time.Millisecond
)

// findAll returns the credentials that have one of the hashes, by their hash.
type findAll[V any] func(ctx context.Context, hashes [][]byte) (map[string]V, error)

// lookUps finds credentials, such as API keys or sessions, by hash, with one statement at a time: what is asked for
// meanwhile shares the next one. So strangers who try credentials cost no more than one statement at a time, and while
// nothing is found one in missPause. A good one waits for the statement that is being made, one pause and its own statement,
// unless more than maxLookUps others wait before it. A call never gets the answer of a statement that began before it: that
// one may have seen a credential that was revoked since.
type lookUps[V any] struct {
	find findAll[V]

	mu      sync.Mutex
	running bool
	queue   list.List                // of *lookUp[V]: those that somebody waits for and no statement has taken
	waiting map[string]*list.Element // the same by hash
}

// lookUp is one hash that somebody waits for.
type lookUp[V any] struct {
	hash    string
	callers int           // that wait for it, while it is in the queue
	done    chan struct{} // closed when the rest is there
	value   V
	found   bool
	err     error
}

// get returns what has the hash; found is false when nothing does. It returns when ctx ends, with its error.
func (l *lookUps[V]) get(ctx context.Context, hash []byte) (value V, found bool, err error) {
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

func (l *lookUps[V]) enqueue(hash string) *list.Element {
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

// leave takes a look-up that nobody waits for any more out of the queue, so that no statement is made for it when the
// database answers again.
func (l *lookUps[V]) leave(e *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := e.Value.(*lookUp[V])
	if one.callers--; one.callers == 0 && l.waiting[one.hash] == e {
		l.take(e)
	}
}

// take removes a look-up from the queue.
func (l *lookUps[V]) take(e *list.Element) *lookUp[V] {
	one := l.queue.Remove(e).(*lookUp[V])
	delete(l.waiting, one.hash)
	return one
}

// run makes statements until nobody waits.
func (l *lookUps[V]) run() {
	for all := l.next(); all != nil; all = l.next() {
		if l.lookUp(all) == 0 {
			time.Sleep(missPause)
		}
	}
}

// lookUp answers all of a batch and returns how many were found. One that makes the statement fail, because its row
// cannot be read, fails alone.
func (l *lookUps[V]) lookUp(all []*lookUp[V]) (found int) {
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

// next returns what the next statement looks up, those that have waited longest; nil when nobody waits.
func (l *lookUps[V]) next() (all []*lookUp[V]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(all) < maxLookUps && l.queue.Len() > 0 {
		all = append(all, l.take(l.queue.Front()))
	}
	l.running = len(all) > 0
	return all
}
