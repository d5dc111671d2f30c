package credential

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"crier/platform/clock"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tenancy/db"
)

const (
	// trustReceiving is how long a process that is receiving revocations can use a cached
	// credential before looking it up again.
	trustReceiving = time.Minute
	// trustAlone is how long a process that is not receiving revocations can use a cached
	// credential before looking it up again.
	trustAlone = 5 * time.Second
	// unknownFor is how long a hash that matches no credential is rejected before it is looked up
	// again.
	unknownFor = 2 * time.Second

	maxCached  = 100_000
	maxUnknown = 10_000
)

// Credential is the result of a lookup.
type Credential interface {
	// Of returns the organization that the credential belongs to.
	Of() tenancy.OrgID
}

// Personal is a Credential that acts for a person and depends on the person's rights.
type Personal interface {
	// OfPerson returns the person that the credential acts for.
	OfPerson() tenancy.PersonID
}

type cached[V Credential] struct {
	value V
	found time.Time
}

// Cache caches lookups of one kind of credential, such as API keys. Hashes that match no credential
// are cached separately, so that they cannot evict credentials. A Cache is safe for concurrent use.
type Cache[V Credential] struct {
	clock       clock.Clock
	revocations Revocations // nil if this process receives none
	lookUps     *Lookups[V]

	mu      sync.Mutex // protects the fields below
	known   boundedCache[cached[V]]
	unknown boundedCache[time.Time] // hashes without a credential, with the times of their lookups
	// epoch counts revocations. If it changes during a lookup, the result is not cached, because
	// the credential may have been revoked.
	epoch uint64
}

// NewCache returns an empty Cache that looks up credentials with find. r is nil in a process that
// does not receive revocations.
func NewCache[V Credential](c clock.Clock, r Revocations, find Find[V]) *Cache[V] {
	return &Cache[V]{
		clock: c, revocations: r, lookUps: NewLookups(find),
		known:   boundedCache[cached[V]]{life: trustReceiving, most: maxCached},
		unknown: boundedCache[time.Time]{life: unknownFor, most: maxUnknown},
	}
}

// Find returns the credential with the given hash; found is false if there is none. If Find returns
// an error, the credential may or may not exist.
func (c *Cache[V]) Find(ctx context.Context, hash []byte) (value V, found bool, err error) {
	name := hexOf(hash)
	now := c.clock.Now()
	c.mu.Lock()
	hit, ok := c.known.get(name)
	missed, miss := c.unknown.get(name)
	epoch := c.epoch
	c.mu.Unlock()
	switch {
	case ok && now.Sub(hit.found) < c.trust():
		return hit.value, true, nil
	case miss && now.Sub(missed) < unknownFor:
		return value, false, nil
	}
	value, found, err = c.lookUps.Get(ctx, hash)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.known.drop(name)
		return value, found, err
	}
	if !found {
		c.known.drop(name)
	}
	switch {
	case epoch != c.epoch: // something was revoked during the lookup
	case found:
		c.known.put(name, cached[V]{value: value, found: now}, now)
	default:
		c.unknown.put(name, now, now)
	}
	return value, found, nil
}

// trust returns how long a cached credential can be used before it is looked up again.
func (c *Cache[V]) trust() time.Duration {
	if c.revocations != nil && c.revocations.Healthy() {
		return trustReceiving
	}
	return trustAlone
}

// Forget removes the credential with the given hash from the cache. Lookups that are already in
// progress do not cache their results.
func (c *Cache[V]) Forget(hash []byte) { c.forget(hexOf(hash)) }

func (c *Cache[V]) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.known.drop(name)
	c.unknown.drop(name)
}

// ForgetOrgs removes the credentials of the given organizations from the cache. It also removes
// every hash that matched no credential, so that the credentials of a restored organization are
// found again. ForgetOrgs scans the whole cache.
func (c *Cache[V]) ForgetOrgs(orgs ...tenancy.OrgID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.known.dropIf(func(k cached[V]) bool { return slices.Contains(orgs, k.value.Of()) })
	c.unknown.clear()
}

// ForgetRevoked removes revoked credentials from the cache. revoked is a payload of
// db.RevocationChannel. If it names an organization, ForgetRevoked removes all of the
// organization's credentials. If it names a person, ForgetRevoked removes all Personal credentials
// that act for the person.
func (c *Cache[V]) ForgetRevoked(revoked string) {
	if of, ok := strings.CutPrefix(revoked, db.PersonRevocation); ok {
		if person, ok := id.Parse[tenancy.PersonTag](of); ok {
			c.forgetPerson(person)
		}
		return
	}
	if org, ok := id.Parse[tenancy.OrgTag](revoked); ok {
		c.ForgetOrgs(org)
		return
	}
	c.forget(revoked)
}

func (c *Cache[V]) forgetPerson(person tenancy.PersonID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.known.dropIf(func(k cached[V]) bool {
		of, ok := any(k.value).(Personal)
		return ok && of.OfPerson() == person
	})
}

// ForgetAll empties the cache. It is called when this process may have missed revocations.
func (c *Cache[V]) ForgetAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.known.clear()
	c.unknown.clear()
}

// boundedCache holds a limited number of values in two maps, young and old. New values are added to
// young. When young is full or older than life, it replaces old, and the values in old are dropped.
//
// A value therefore stays in the cache for at least life, unless the cache fills up. While values
// are being added, a value stays for at most twice life.
type boundedCache[V any] struct {
	life       time.Duration
	most       int
	young, old map[string]V
	since      time.Time // when young was created
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

// hexOf returns a hash in hexadecimal, the format used by the cache and by revocations.
func hexOf(hash []byte) string { return hex.EncodeToString(hash) }
