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

// Revocations carries the hashes of revoked keys between processes. An implementation passes each hash that it receives
// to Accounts.Forget, and calls Accounts.ForgetAll before Healthy returns true again.
type Revocations interface {
	// Publish sends a hash to the other processes, at once or as soon as they can be reached.
	Publish(ctx context.Context, hash string)
	// Healthy reports whether this process receives the revocations of others. It becomes false within five seconds
	// after the connection is lost.
	Healthy() bool
}

// CreateKey creates an API key of the principal's organization and returns it in full, which is not possible later. A
// name that the database cannot store is fault.Invalid.
func (a *Accounts) CreateKey(ctx context.Context, p tenancy.Principal, name string) (string, tenancy.APIKey, error) {
	const op = "tenancy.CreateKey"
	full, err := secret.Token(tenancy.KeyPrefix, tenancy.KeyLength)
	if err != nil {
		return "", tenancy.APIKey{}, fault.Wrap(fault.Internal, op, "", err)
	}
	if !tenancy.Storable(name) {
		return "", tenancy.APIKey{}, fault.New(fault.Invalid, op,
			"The name holds a character that cannot be stored, such as NUL (U+0000).")
	}
	k := tenancy.APIKey{
		ID: id.New[tenancy.KeyTag](), Org: p.Org, Name: name, Prefix: full[:len(tenancy.KeyPrefix)+4],
		CreatedBy: p.Person, CreatedAt: a.clock.Now(),
	}
	hash := secret.HashToken(full)
	if err := a.store.CreateKey(ctx, k, hash); err != nil {
		return "", tenancy.APIKey{}, pg.Fault(op, err)
	}
	a.keys.forget(hex.EncodeToString(hash)) // the cache may hold it as unknown
	return full, k, nil
}

// DeleteKey revokes a key. This process refuses the key at once, the others when they receive the revocation: within
// five seconds if they have lost Redis, within a minute if only this process has lost Redis or ends before it could
// publish. A key that is not the organization's is fault.NotFound.
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

// Authenticate returns the principal of the API key in an Authorization header. A value that is not a live key is
// fault.Unauthenticated. It is fault.Unavailable when the database cannot be asked and no cached answer is recent
// enough.
func (a *Accounts) Authenticate(ctx context.Context, authorization string) (tenancy.Principal, error) {
	const op = "tenancy.Authenticate"
	if authorization == "" {
		return tenancy.Principal{}, fault.New(fault.Unauthenticated, op,
			"No API key found: send it in the Authorization header.")
	}
	denied := fault.New(fault.Unauthenticated, op, "Invalid API key.")
	if !strings.HasPrefix(authorization, tenancy.KeyPrefix) ||
		len(authorization) != len(tenancy.KeyPrefix)+tenancy.KeyLength {
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
	return tenancy.Principal{
		Org: k.Org, Person: k.CreatedBy, Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaKey, Key: k.ID,
	}, nil
}

// Forget removes a key that another process revoked from the cache. The argument is its hash in hexadecimal.
func (a *Accounts) Forget(hash string) { a.keys.forget(hash) }

// ForgetAll empties the key cache. It is called when revocations of other processes may have been lost.
func (a *Accounts) ForgetAll() { a.keys.forgetAll() }
