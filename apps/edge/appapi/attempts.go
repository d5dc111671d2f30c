package appapi

import (
	"container/list"
	"context"
	"sync"
	"time"

	"crier/platform/clock"
)

// Attempts counts attempts that may fail, by key. What succeeds is forgiven, so that failures stay.
type Attempts interface {
	// Begin counts an attempt of the key and returns how many are counted. After the nth the key has to wait for the nth
	// delay, the last one when there are fewer, and for least at the least; a delay is no longer than AttemptMemory. While
	// the key has to wait, nothing is counted and wait is the rest.
	Begin(ctx context.Context, key string, delays []time.Duration, least time.Duration) (n int, wait time.Duration, err error)
	// Forgive takes the key's last attempt back, with the delay after it.
	Forgive(ctx context.Context, key string) error
}

const (
	// AttemptMemory is how long a key is remembered after its last delay.
	AttemptMemory = time.Hour
	// MaxAttempts is how many keys are remembered; of more, those whose last attempt is the oldest are forgotten.
	MaxAttempts = 100_000
)

// ownAttempts are Attempts of this process. Its methods return no errors.
type ownAttempts struct {
	clock clock.Clock
	most  int

	mu    sync.Mutex
	byKey map[string]*list.Element
	order list.List // of *attempts, by their last attempt
}

type attempts struct {
	key   string
	n     int
	ready time.Time // until then the key has to wait
	ends  time.Time // from then on it is forgotten
}

func newOwnAttempts(c clock.Clock, most int) *ownAttempts {
	return &ownAttempts{clock: c, most: most, byKey: map[string]*list.Element{}}
}

// Begin is that of Attempts.
func (o *ownAttempts) Begin(_ context.Context, key string, delays []time.Duration, least time.Duration) (int, time.Duration, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	o.forget(now)
	a := o.find(key, now)
	if wait := a.ready.Sub(now); wait > 0 {
		return a.n, wait, nil
	}
	a.n++
	delay := max(nth(delays, a.n), least)
	a.ready, a.ends = now.Add(delay), now.Add(delay+AttemptMemory)
	o.order.MoveToBack(o.byKey[key])
	return a.n, 0, nil
}

// find returns what is counted for the key, and makes room for it when it is new.
func (o *ownAttempts) find(key string, now time.Time) *attempts {
	if e, ok := o.byKey[key]; ok {
		if a := e.Value.(*attempts); now.Before(a.ends) {
			return a
		}
		o.drop(e)
	}
	if len(o.byKey) >= o.most {
		o.drop(o.order.Front())
	}
	a := &attempts{key: key}
	o.byKey[key] = o.order.PushBack(a)
	return a
}

// forget drops the keys at the front whose memory is over.
func (o *ownAttempts) forget(now time.Time) {
	for e := o.order.Front(); e != nil && !now.Before(e.Value.(*attempts).ends); e = o.order.Front() {
		o.drop(e)
	}
}

func (o *ownAttempts) drop(e *list.Element) {
	delete(o.byKey, o.order.Remove(e).(*attempts).key)
}

// Forgive is that of Attempts.
func (o *ownAttempts) Forgive(_ context.Context, key string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, ok := o.byKey[key]
	if !ok {
		return nil
	}
	a := e.Value.(*attempts)
	a.n, a.ready = a.n-1, time.Time{}
	if a.n <= 0 {
		o.drop(e)
	}
	return nil
}

// nth returns the delay after the nth attempt.
func nth(delays []time.Duration, n int) time.Duration {
	if len(delays) == 0 {
		return 0
	}
	return delays[min(n, len(delays))-1]
}

// growing returns delays: none after the first attempts, as many as are free but one, then first, and twice as much after
// each, up to longest.
func growing(free int, first, longest time.Duration) []time.Duration {
	delays := make([]time.Duration, free-1)
	for d := first; d < longest; d *= 2 {
		delays = append(delays, d)
	}
	return append(delays, longest)
}
