package admission

import (
	"container/list"
	"context"
	"sync"
	"time"

	"crier/platform/clock"
)

// Attempts counts logins under three keys: the client, the account, and the pair of account and
// site. A login is counted before it is attempted, and forgiven if it succeeds, so that only
// failures remain. Both methods return quickly. If a method returns an error, the change may still
// have been made.
type Attempts interface {
	// Begin counts an attempt and returns 0. If any key has to wait, Begin counts nothing and
	// returns the longest remaining wait; see LoginDelays.
	Begin(ctx context.Context, keys [3]string) (wait time.Duration, err error)
	// Forgive removes each key's last attempt and the delay that follows it.
	Forgive(ctx context.Context, keys [3]string) error
}

const (
	// AttemptMemory is how long a key is remembered after its last delay.
	AttemptMemory = time.Hour
	// MaxAttempts is the maximum number of keys that are remembered. Keys whose last attempt is
	// oldest are forgotten first.
	MaxAttempts = 100_000
	// SharedAfter is the number of attempts a site makes on an account before the account's delays
	// apply to the site. It lets the owner of an attacked account mistype the password twice
	// without waiting.
	SharedAfter = 3
)

// LoginDelays returns how long a key waits after its first attempt, its second attempt, and so on.
// The last delay in a list applies to all further attempts.
//
// The first list is for a client, across all accounts. The other two lists are for a site's logins
// to one account, and the longer of the two delays applies. The second list counts the attempts of
// all sites on the account; it applies once the site has made SharedAfter attempts. The third list
// counts the site's own attempts. The account itself never waits.
func LoginDelays() [3][]time.Duration {
	return [3][]time.Duration{
		growingDelays(20, time.Second, time.Minute),
		growingDelays(10, time.Minute, 15*time.Minute),
		growingDelays(5, time.Minute, 15*time.Minute),
	}
}

// ownAttempts counts this process's attempts, in memory. Its methods never return an error.
type ownAttempts struct {
	clock  clock.Clock
	most   int // keys, at least three
	delays [3][]time.Duration

	mu    sync.Mutex // protects the fields below
	byKey map[string]*list.Element
	order list.List // *attempts values, ordered by last attempt, oldest first
}

type attempts struct {
	key   string
	n     int
	ready time.Time // when the wait ends
	ends  time.Time // when the key is forgotten
}

func newOwnAttempts(c clock.Clock, most int, delays [3][]time.Duration) *ownAttempts {
	return &ownAttempts{clock: c, most: most, delays: delays, byKey: map[string]*list.Element{}}
}

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
	client.delay(now, delayAfter(o.delays[0], client.n))
	account.delay(now, 0)
	own := delayAfter(o.delays[2], pair.n)
	if pair.n >= SharedAfter {
		own = max(own, delayAfter(o.delays[1], account.n))
	}
	pair.delay(now, own)
	return 0, nil
}

func (a *attempts) delay(now time.Time, d time.Duration) {
	a.ready, a.ends = now.Add(d), now.Add(d+AttemptMemory)
}

// count adds an attempt to a key. If a new key would exceed the limit, count removes the oldest
// key.
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

// forget drops the oldest keys until it reaches a key that must still be remembered.
func (o *ownAttempts) forget(now time.Time) {
	for e := o.order.Front(); e != nil && !now.Before(e.Value.(*attempts).ends); e = o.order.Front() {
		o.drop(e)
	}
}

func (o *ownAttempts) drop(e *list.Element) {
	delete(o.byKey, o.order.Remove(e).(*attempts).key)
}

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

// delayAfter returns the delay after attempt n, counting from one. The last delay applies to all
// later attempts.
func delayAfter(delays []time.Duration, n int) time.Duration {
	if len(delays) == 0 {
		return 0
	}
	return delays[min(n, len(delays))-1]
}

// growingDelays returns delays for LoginDelays: zero after each of the first free-1 attempts, then
// first, which doubles with each further attempt up to longest.
func growingDelays(free int, first, longest time.Duration) []time.Duration {
	delays := make([]time.Duration, free-1)
	for d := first; d < longest; d *= 2 {
		delays = append(delays, d)
	}
	return append(delays, longest)
}
