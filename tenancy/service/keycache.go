package service

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"crier/platform/clock"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

const (
	// trustReceiving is how long a found key is used without another look-up while this process receives revocations.
	trustReceiving = time.Minute
	// trustAlone is the same while it does not receive them.
	trustAlone = 5 * time.Second
	// unknownFor is how long a key that does not exist is refused without another look-up.
	unknownFor = 2 * time.Second

	maxCached  = 100_000
	maxUnknown = 10_000
)

type cachedKey struct {
	key   tenancystore.FoundKey
	found time.Time
}

// keyCache caches the look-up of API keys. Keys that do not exist are in a cache of their own, so that they cannot
// evict the others. It is safe for concurrent use.
type keyCache struct {
	clock       clock.Clock
	revocations Revocations // nil: none are received
	lookUps     *lookUps[tenancystore.FoundKey]

	mu      sync.Mutex // protects the fields below
	known   boundedCache[cachedKey]
	unknown boundedCache[time.Time] // the values are the times of the look-ups
	// epoch is the number of revocations. The result of a look-up that began at an earlier epoch is not cached, since
	// it may contain a revoked key.
	epoch uint64
}

func newKeyCache(c clock.Clock, r Revocations, find findAll[tenancystore.FoundKey]) *keyCache {
	return &keyCache{
		clock: c, revocations: r, lookUps: &lookUps[tenancystore.FoundKey]{find: find},
		known:   boundedCache[cachedKey]{life: trustReceiving, most: maxCached},
		unknown: boundedCache[time.Time]{life: unknownFor, most: maxUnknown},
	}
}

// find returns the key that has the hash; found is false when no key has it. After an error neither is known.
func (c *keyCache) find(ctx context.Context, hash []byte) (key tenancystore.FoundKey, found bool, err error) {
	name := hexOf(hash)
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
	if err != nil {
		c.known.drop(name)
		return key, found, err
	}
	if !found {
		c.known.drop(name)
	}
	switch {
	case epoch != c.epoch: // revoked meanwhile
	case found:
		c.known.put(name, cachedKey{key: key, found: now}, now)
	default:
		c.unknown.put(name, now, now)
	}
	return key, found, nil
}

// trust returns how long a found key is used without another look-up.
func (c *keyCache) trust() time.Duration {
	if c.revocations != nil && c.revocations.Healthy() {
		return trustReceiving
	}
	return trustAlone
}

// forget removes a key, whose hash in hexadecimal is name. Look-ups that have begun do not cache their results.
func (c *keyCache) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.known.drop(name)
	c.unknown.drop(name)
}

// forgetOrgs removes the keys of organizations, and what is known of keys that were not found: those of an organization
// that was restored are found again. It goes through the whole cache.
func (c *keyCache) forgetOrgs(orgs ...tenancy.OrgID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.known.dropIf(func(k cachedKey) bool { return slices.Contains(orgs, k.key.Org) })
	c.unknown.clear()
}

func (c *keyCache) forgetAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.known.clear()
	c.unknown.clear()
}

// boundedCache is a cache of at most most values. A value stays for at least life unless the cache is full, and for at
// most twice life as long as values are put. The values are in two maps, and the older map is dropped as a whole.
type boundedCache[V any] struct {
	life       time.Duration
	most       int
	young, old map[string]V
	since      time.Time // the creation of young
}

func (a *boundedCache[V]) get(name string) (V, bool) {
	if v, ok := a.young[name]; ok {
		return v, true
	}
	v, ok := a.old[name]
	return v, ok
}

func (a *boundedCache[V]) put(name string, v V, now time.Time) {
	if a.young == nil || len(a.young) >= a.most/2 || now.Sub(a.since) >= a.life {
		a.old = a.young
		if now.Sub(a.since) >= 2*a.life {
			a.old = nil
		}
		a.young, a.since = map[string]V{}, now
	}
	a.young[name] = v
}

func (a *boundedCache[V]) drop(name string) {
	delete(a.young, name)
	delete(a.old, name)
}

func (a *boundedCache[V]) dropIf(drop func(V) bool) {
	for _, all := range []map[string]V{a.young, a.old} {
		maps.DeleteFunc(all, func(_ string, v V) bool { return drop(v) })
	}
}

func (a *boundedCache[V]) clear() { a.young, a.old = nil, nil }
