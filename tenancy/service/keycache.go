package service

import (
	"context"
	"encoding/hex"
	"sync"
	"time"

	"crier/platform/clock"
	"crier/tenancy"
)

// How long a found key is used without another look-up, long only while the revocations of other processes arrive, and how
// long one that does not exist is refused without another look-up.
const (
	trustReceiving = time.Minute
	trustAlone     = 5 * time.Second
	unknownFor     = 2 * time.Second

	maxCached  = 100_000
	maxUnknown = 10_000
)

type cachedKey struct {
	key   tenancy.APIKey
	found time.Time
}

// keyCache saves the look-up of keys that were seen a moment ago. Keys that do not exist are remembered apart, so that they
// take no room from others. It is safe for concurrent use.
type keyCache struct {
	clock       clock.Clock
	revocations Revocations // nil without other processes
	lookUps     *lookUps[tenancy.APIKey]

	mu      sync.Mutex
	known   aging[cachedKey]
	unknown aging[time.Time] // when they were looked for
	epoch   uint64           // grows with every revocation, so that a look-up under way cannot bring a dead key back
}

func newKeyCache(c clock.Clock, r Revocations, find findAll[tenancy.APIKey]) *keyCache {
	return &keyCache{
		clock: c, revocations: r, lookUps: &lookUps[tenancy.APIKey]{find: find},
		known:   aging[cachedKey]{life: trustReceiving, most: maxCached},
		unknown: aging[time.Time]{life: unknownFor, most: maxUnknown},
	}
}

// find returns the key that has the hash; found is false when there is none. An error says that nobody knows.
func (c *keyCache) find(ctx context.Context, hash []byte) (key tenancy.APIKey, found bool, err error) {
	name := hex.EncodeToString(hash)
	now := c.clock.Now()
	c.mu.Lock()
	hit, ok := c.known.get(name)
	missed, miss := c.unknown.get(name)
	epoch := c.epoch
	c.mu.Unlock()
	switch {
	case ok && now.Sub(hit.found) < c.trust():
		return hit.key, true, nil
	case miss && now.Sub(missed) < unknownFor:
		return key, false, nil
	}
	key, found, err = c.lookUps.get(ctx, hash)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil || !found:
		c.known.drop(name)
		if err == nil && epoch == c.epoch {
			c.unknown.put(name, now, now)
		}
	case epoch == c.epoch:
		c.known.put(name, cachedKey{key, now}, now)
	}
	return key, found, err
}

func (c *keyCache) trust() time.Duration {
	if c.revocations != nil && c.revocations.Healthy() {
		return trustReceiving
	}
	return trustAlone
}

func (c *keyCache) revoke(ctx context.Context, hash []byte) {
	name := hex.EncodeToString(hash)
	c.forget(name)
	if c.revocations != nil {
		c.revocations.Publish(ctx, name)
	}
}

// forget makes the next request with the key look it up.
func (c *keyCache) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.known.drop(name)
	c.unknown.drop(name)
}

func (c *keyCache) forgetAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.known.clear()
	c.unknown.clear()
}

// aging keeps at most so many values: each for at least life, unless there are too many, and for at most twice as long as
// values are put. It keeps them in two maps and drops the older one whole.
type aging[V any] struct {
	life       time.Duration
	most       int
	young, old map[string]V
	since      time.Time // when young was begun
}

func (a *aging[V]) get(name string) (V, bool) {
	if v, ok := a.young[name]; ok {
		return v, true
	}
	v, ok := a.old[name]
	return v, ok
}

func (a *aging[V]) put(name string, v V, now time.Time) {
	if a.young == nil || len(a.young) >= a.most/2 || now.Sub(a.since) >= a.life {
		a.old = a.young
		if now.Sub(a.since) >= 2*a.life {
			a.old = nil
		}
		a.young, a.since = map[string]V{}, now
	}
	a.young[name] = v
}

func (a *aging[V]) drop(name string) {
	delete(a.young, name)
	delete(a.old, name)
}

func (a *aging[V]) clear() { a.young, a.old = nil, nil }
