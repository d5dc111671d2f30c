package appapi

import (
	"container/list"
	"context"
	"sync"
	"time"

	"crier/platform/clock"
)

// Attempts counts log-ins that may fail, each under three keys: of its client, of its account, and of its account and site. What succeeds is
// forgiven, so that failures stay. Both methods return soon, also when they fail; what failed may have been done.
type Attempts interface {
	// Begin counts an attempt. When a key has to wait nothing is counted, and wait is the longest rest; see LoginDelays.
	Begin(ctx context.Context, keys [3]string) (wait time.Duration, err error)
	// Forgive takes the last attempt of each key back, with the delay after it.
	Forgive(ctx context.Context, keys [3]string) error
}

const (
	// AttemptMemory is how long a key is remembered after its last delay.
	AttemptMemory = time.Hour
	// MaxAttempts is how many keys are remembered; of more, those whose last attempt is the oldest are forgotten.
	MaxAttempts = 100_000
	// SharedAfter is the attempt of a site on an account from which on the delays of the account are its own, too: who
	// mistypes the password of an attacked account twice does not wait.
	SharedAfter = 3
)

// LoginDelays returns how long a key has to wait after its first attempt, its second, and so on; the last delay goes on.
// The first list is for clients, whatever the account. The other two are for a site on an account: by the attempts of all
// sites on the account, from its attempt of number SharedAfter on, and by its own; the longer delay counts. An account
// itself never has to wait.
func LoginDelays() [3][]time.Duration {
	return [3][]time.Duration{
		growing(20, time.Second, time.Minute),
		growing(10, time.Minute, 15*time.Minute),
		growing(5, time.Minute, 15*time.Minute),
	}
}

// ownAttempts are Attempts of this process. Its methods return no errors.
type ownAttempts struct {
	clock  clock.Clock
	most   int // at least three
	delays [3][]time.Duration

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

func newOwnAttempts(c clock.Clock, most int, delays [3][]time.Duration) *ownAttempts {
	return &ownAttempts{clock: c, most: most, delays: delays, byKey: map[string]*list.Element{}}
}

// Begin is that of Attempts.
func (o *ownAttempts) Begin(_ context.Context, keys [3]string) (wait time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	o.forget(now)
	for _, key := range keys {
		if e, ok := o.byKey[key]; ok {
			wait = max(wait, e.Value.(*attempts).ready.Sub(now))
		}
	}
	if wait > 0 {
		return wait, nil
	}
	client, account, pair := o.count(keys[0], now), o.count(keys[1], now), o.count(keys[2], now)
	client.delay(now, nth(o.delays[0], client.n))
	account.delay(now, 0)
	own := nth(o.delays[2], pair.n)
	if pair.n >= SharedAfter {
		own = max(own, nth(o.delays[1], account.n))
	}
	pair.delay(now, own)
	return 0, nil
}

func (a *attempts) delay(now time.Time, d time.Duration) {
	a.ready, a.ends = now.Add(d), now.Add(d+AttemptMemory)
}

// count adds an attempt to what is counted for the key, and makes room for it when it is new.
func (o *ownAttempts) count(key string, now time.Time) *attempts {
	e, ok := o.byKey[key]
	if ok && !now.Before(e.Value.(*attempts).ends) {
		o.drop(e)
		ok = false
	}
	if !ok {
		if len(o.byKey) >= o.most {
			o.drop(o.order.Front())
		}
		e = o.order.PushBack(&attempts{key: key})
		o.byKey[key] = e
	}
	o.order.MoveToBack(e)
	a := e.Value.(*attempts)
	a.n++
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
func (o *ownAttempts) Forgive(_ context.Context, keys [3]string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range keys {
		e, ok := o.byKey[key]
		if !ok {
			continue
		}
		a := e.Value.(*attempts)
		a.n, a.ready = a.n-1, time.Time{}
		if a.n <= 0 {
			o.drop(e)
		}
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
