package service

import (
	"context"
	"encoding/hex"
	"strings"

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
	hash := secret.HashToken(full)
	if err := a.store.CreateKey(ctx, k, hash); err != nil {
		return "", tenancy.APIKey{}, pg.Fault(op, err)
	}
	a.keys.forget(hex.EncodeToString(hash)) // it may have been asked for before it existed
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
	k, found, err := a.keys.find(ctx, hash)
	if err != nil {
		f := fault.Wrap(fault.Unavailable, op, "The service cannot look up API keys right now.", err)
		f.RetryAfter = pg.RetryAfter
		return tenancy.Principal{}, f
	}
	if !found || k.ExpiresAt != nil && !a.clock.Now().Before(*k.ExpiresAt) {
		return tenancy.Principal{}, denied
	}
	return tenancy.Principal{Org: k.Org, Person: k.CreatedBy, Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaKey, Key: k.ID}, nil
}

// Forget drops a key that another process revoked, by the hexadecimal form of its hash.
func (a *Accounts) Forget(hash string) { a.keys.forget(hash) }

// ForgetAll drops every cached key, after revocations of other processes may have been lost.
func (a *Accounts) ForgetAll() { a.keys.forgetAll() }
