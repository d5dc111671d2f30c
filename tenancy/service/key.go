package service

import (
	"context"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
)

// Revocations carries the hashes of revoked keys between processes. What arrives is given to Forget of Accounts, and
// ForgetAll is called before Healthy returns true again.
type Revocations interface {
	// Publish sends a hash to the other processes, now or as soon as it can.
	Publish(ctx context.Context, hash string)
	// Healthy returns whether this process receives the revocations of others. It turns false within five seconds.
	Healthy() bool
}

// CreateKey makes an API key of the principal's organization and returns it in full, this once.
func (a *Accounts) CreateKey(ctx context.Context, p tenancy.Principal, name string) (string, tenancy.APIKey, error) {
	const op = "tenancy.CreateKey"
	full, err := secret.Token(tenancy.KeyPrefix, tenancy.KeyLength)
	if err != nil {
		return "", tenancy.APIKey{}, fault.Wrap(fault.Internal, op, "", err)
	}
	if !tenancy.Storable(name) {
		return "", tenancy.APIKey{}, fault.New(fault.Invalid, op, "The name holds a character that cannot be stored, such as NUL (U+0000).")
	}
	k := tenancy.APIKey{ID: id.New[tenancy.KeyTag](), Org: p.Org, Name: name, Prefix: full[:len(tenancy.KeyPrefix)+4], CreatedBy: p.Person, CreatedAt: a.clock.Now()}
	if err := a.store.CreateKey(ctx, k, secret.HashToken(full)); err != nil {
		return "", tenancy.APIKey{}, pg.Fault(op, err)
	}
	return full, k, nil
}

// DeleteKey revokes a key. It stops working in this process at once, and in others when they receive the revocation:
// within five seconds if Redis is away from them, within a minute if it is away from this process alone or this process
// ends before it could publish. A key that is not the organization's is NotFound.
func (a *Accounts) DeleteKey(ctx context.Context, p tenancy.Principal, key tenancy.KeyID) error {
	const op = "tenancy.DeleteKey"
	hash, err := a.store.DeleteKey(ctx, p.Org, key)
	if pg.IsNoRows(err) {
		return fault.New(fault.NotFound, op, "There is no such API key.")
	}
	if err != nil {
		return pg.Fault(op, err)
	}
	a.keys.revoke(ctx, hash)
	return nil
}

// Authenticate finds whose API key the value of an Authorization header is. Anything that is no live key is Unauthenticated.
func (a *Accounts) Authenticate(ctx context.Context, authorization string) (tenancy.Principal, error) {
	const op = "tenancy.Authenticate"
	if authorization == "" {
		return tenancy.Principal{}, fault.New(fault.Unauthenticated, op, "No API key found: send it in the Authorization header.")
	}
	denied := fault.New(fault.Unauthenticated, op, "Invalid API key.")
	if !strings.HasPrefix(authorization, tenancy.KeyPrefix) || len(authorization) != len(tenancy.KeyPrefix)+tenancy.KeyLength {
		return tenancy.Principal{}, denied
	}
	hash := secret.HashToken(authorization)
	k, err := a.keys.find(hash, func() (tenancy.APIKey, error) { return a.store.KeyByHash(ctx, hash) })
	if pg.IsNoRows(err) || err == nil && k.ExpiresAt != nil && !a.clock.Now().Before(*k.ExpiresAt) {
		return tenancy.Principal{}, denied
	}
	if err != nil {
		f := fault.Wrap(fault.Unavailable, op, "The service cannot look up API keys right now.", err)
		f.RetryAfter = pg.RetryAfter
		return tenancy.Principal{}, f
	}
	return tenancy.Principal{Org: k.Org, Person: k.CreatedBy, Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaKey, Key: k.ID}, nil
}

// How long a found key is used without another look-up: long only while the revocations of other processes arrive.
const (
	trustReceiving = time.Minute
	trustAlone     = 5 * time.Second
	maxCached      = 100_000
)

type cachedKey struct {
	key   tenancy.APIKey
	found time.Time
}

// keyCache saves the look-up of keys that were seen a moment ago. It never remembers a miss.
type keyCache struct {
	clock       clock.Clock
	revocations Revocations // nil without other processes
	mu          sync.Mutex
	known       map[string]cachedKey
	epoch       uint64 // grows with every revocation, so that a look-up under way cannot bring a dead key back
}

func newKeyCache(c clock.Clock, r Revocations) *keyCache {
	return &keyCache{clock: c, revocations: r, known: map[string]cachedKey{}}
}

func (c *keyCache) find(hash []byte, look func() (tenancy.APIKey, error)) (tenancy.APIKey, error) {
	name := hex.EncodeToString(hash)
	now := c.clock.Now()
	c.mu.Lock()
	hit, ok := c.known[name]
	epoch := c.epoch
	c.mu.Unlock()
	if ok && now.Sub(hit.found) < c.trust() {
		return hit.key, nil
	}
	key, err := look()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		delete(c.known, name)
		return key, err
	}
	if epoch == c.epoch {
		if len(c.known) >= maxCached {
			clear(c.known)
		}
		c.known[name] = cachedKey{key, now}
	}
	return key, nil
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

func (c *keyCache) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	delete(c.known, name)
}

// Forget drops a key that another process revoked, by the hexadecimal form of its hash.
func (a *Accounts) Forget(hash string) { a.keys.forget(hash) }

// ForgetAll drops every cached key, after revocations of other processes may have been lost.
func (a *Accounts) ForgetAll() { a.keys.forgetAll() }

func (c *keyCache) forgetAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	clear(c.known)
}
