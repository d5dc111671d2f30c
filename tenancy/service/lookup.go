package service

import (
	"context"
	"sync"
	"time"

	"crier/platform/batch"
	"crier/platform/pg"
	"crier/tenancy"
)

const (
	lookUpTime = 10 * time.Second // of one statement
	maxLookUps = 500              // keys in one statement

	// missPause is how long after a statement that found nothing the next one begins.
	missPause = 20 * time.Millisecond
)

// findKeys returns the keys that have one of the hashes, by their hash.
type findKeys func(ctx context.Context, hashes [][]byte) (map[string]tenancy.APIKey, error)

// lookUps finds keys by hash, with one statement at a time: what is asked for meanwhile shares the next one. So strangers
// who try keys, however many, cost one statement in missPause, and a good key waits for two statements and two pauses at
// most unless more than maxLookUps wait. A call never gets the answer of a statement that began before it: that one may have seen a
// key that was revoked since.
type lookUps struct {
	find findKeys

	mu      sync.Mutex
	running bool
	queue   []*lookUp          // as many as there are requests
	waiting map[string]*lookUp // the same by hash
}

// lookUp is one hash that somebody waits for.
type lookUp struct {
	hash  string
	done  chan struct{} // closed when the rest is there
	key   tenancy.APIKey
	found bool
	err   error
}

// get returns the key that has the hash; found is false when there is none. It returns when ctx ends, with its error.
func (l *lookUps) get(ctx context.Context, hash []byte) (key tenancy.APIKey, found bool, err error) {
	one := l.enqueue(string(hash))
	select {
	case <-one.done:
		return one.key, one.found, one.err
	case <-ctx.Done():
		return key, false, ctx.Err()
	}
}

func (l *lookUps) enqueue(hash string) *lookUp {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one, ok := l.waiting[hash]; ok {
		return one
	}
	if l.waiting == nil {
		l.waiting = map[string]*lookUp{}
	}
	one := &lookUp{hash: hash, done: make(chan struct{})}
	l.queue, l.waiting[hash] = append(l.queue, one), one
	if !l.running {
		l.running = true
		go l.run()
	}
	return one
}

// run makes statements until nobody waits.
func (l *lookUps) run() {
	for all := l.next(); all != nil; all = l.next() {
		if l.lookUp(all) == 0 {
			time.Sleep(missPause)
		}
	}
}

// lookUp answers all of a batch and returns how many keys were found. A key that makes the statement fail, because its row
// cannot be read, fails alone.
func (l *lookUps) lookUp(all []*lookUp) (found int) {
	ctx, cancel := context.WithTimeout(context.Background(), lookUpTime)
	defer cancel()
	refuse := func(one *lookUp, err error) { one.err = err; close(one.done) }
	left, err := batch.Isolate(all, func(some []*lookUp) error {
		hashes := make([][]byte, len(some))
		for i, one := range some {
			hashes[i] = []byte(one.hash)
		}
		keys, err := l.find(ctx, hashes)
		if err != nil {
			return err
		}
		found += len(keys)
		for _, one := range some {
			one.key, one.found = keys[one.hash]
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
func (l *lookUps) next() []*lookUp {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.queue), maxLookUps)
	if n == 0 {
		l.running, l.queue = false, nil
		return nil
	}
	all := l.queue[:n:n]
	l.queue = l.queue[n:]
	for _, one := range all {
		delete(l.waiting, one.hash)
	}
	return all
}
