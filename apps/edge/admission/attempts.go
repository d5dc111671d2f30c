package admission

import (
	"container/list"
	"context"
	"sync"
	"time"

	"crier/platform/clock"
)

// Attempts counts logins under three keys: the client, the account, and the pair of account and
// site. A login is counted before it is attempted. If it succeeds, it is removed from the counts,
// so that only failures remain. Both methods return quickly. If a method returns an error, the
// counts may have changed anyway.
type Attempts interface {
	// Begin counts an attempt under each key and returns 0. If any key still has to wait, Begin
	// counts nothing and returns the longest remaining wait; see LoginDelays.
	Begin(ctx context.Context, keys [3]string) (wait time.Duration, err error)
	// Forgive removes each key's most recent attempt and the delay that the attempt caused.
	Forgive(ctx context.Context, keys [3]string) error
}

const (
	// AttemptMemory is how long a key is remembered after its last delay.
	AttemptMemory = time.Hour
	// MaxAttempts is the maximum number of keys that are remembered. If there are more, the keys
	// with the oldest last attempts are forgotten first.
	MaxAttempts = 100_000
	// SharedAfter is the number of attempts that a site can make on an account before the account's
	// delays also apply to the site. It lets the owner of an account under attack mistype the
	// password twice without waiting.
	SharedAfter = 3
)

// LoginDelays returns three lists of delays. Each list contains the delays after a key's first
// attempt, after its second attempt, and so on. A list's last delay applies to all further
// attempts.
//
// The first list applies to a client, across all accounts. The other two lists apply to a site's
// logins to one account, and the longer of their two delays is used. The second list counts the
// attempts that all sites have made on the account. It applies once the site itself has made
// SharedAfter attempts. The third list counts only the site's own attempts.
//
// An account as a whole is never locked, because each delay applies only to a client or a site.
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

// count adds an attempt to key. If a new key would exceed the limit, count first drops the key
// whose last attempt is oldest.
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

// forget drops keys, oldest first, until it reaches a key that must still be remembered.
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

// delayAfter returns the delay after the nth attempt, counting from one. The last delay applies to
// all later attempts.
func delayAfter(delays []time.Duration, n int) time.Duration {
	if len(delays) == 0 {
		return 0
	}
	return delays[min(n, len(delays))-1]
}

// growingDelays returns a list of delays for LoginDelays. The first free-1 attempts cause no delay.
// The next attempt causes a delay of first. Each further attempt doubles the delay until it reaches
// longest.
func growingDelays(free int, first, longest time.Duration) []time.Duration {
	delays := make([]time.Duration, free-1)
	for d := first; d < longest; d *= 2 {
		delays = append(delays, d)
	}
	return append(delays, longest)
}
