package service

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

const (
	// maxKeys is the number of keys of an organization that have not expired.
	maxKeys = 1000
	// shownOfKey is how many characters of a key's random part people see, to recognize it.
	shownOfKey = 4
	// maxOverlap is in hours.
	maxOverlap = 72
)

// Keys returns the keys of the principal's organization that have not ended, the newest first.
func (a *Accounts) Keys(ctx context.Context, p tenancy.Principal) ([]tenancy.KeyOf, error) {
	var out []tenancy.KeyOf
	err := a.inOrg(ctx, "tenancy.Keys", p.Org, func(tx *tenancystore.OrgTx) error {
		keys, err := tx.Keys(ctx, a.clock.Now(), maxKeys+1)
		out = make([]tenancy.KeyOf, len(keys))
		for i, k := range keys {
			out[i] = k.KeyOf
		}
		return err
	})
	return out, err
}

// CreateKey creates an API key of the principal's organization and returns it in full, which is not
// possible later. The name has 1 to 64 characters, and ExpiresAt is in the future: otherwise it is
// fault.Invalid. It needs a sign-in in the last ten minutes, or a proof. It returns fault.Conflict
// if the organization already has 1000 keys.
func (a *Accounts) CreateKey(ctx context.Context, p tenancy.Principal, n tenancy.NewKey) (
	full string, k tenancy.APIKey, err error) {
	const op = "tenancy.CreateKey"
	var in tenancy.Inputs
	n.Name = in.Name("name", n.Name, 1, 64)
	in.Check(n.ExpiresAt == nil || n.ExpiresAt.After(a.clock.Now()), "expiresAt", "must be in the future")
	in.Check(n.ExpiresAt == nil || n.ExpiresAt.Year() < 10_000, "expiresAt", "must be before the year 10000")
	if err := in.Err(op); err != nil {
		return "", k, err
	}
	if err := a.proveLately(ctx, op, p, n.Proof); err != nil {
		return "", k, err
	}
	err = a.inOrgAs(ctx, op, p, func(tx *tenancystore.OrgTx) error {
		full, k, err = a.makeKey(ctx, tx, op, p, n, false)
		if err != nil {
			return err
		}
		return a.recordKey(ctx, tx, p, tenancy.ActionKeyCreated, mailKeyCreated, k)
	})
	return full, k, err
}

// makeKey inserts a new key. It locks the organization, so that concurrent requests cannot exceed
// the limit.
func (a *Accounts) makeKey(ctx context.Context, tx *tenancystore.OrgTx, op string, p tenancy.Principal,
	n tenancy.NewKey, rotated bool) (string, tenancy.APIKey, error) {
	if _, err := tx.LockOrganization(ctx); err != nil {
		return "", tenancy.APIKey{}, err
	}
	now := a.clock.Now()
	count, err := tx.CountKeys(ctx, now)
	if err == nil && count >= maxKeys {
		err = fault.New(fault.Conflict, op, "The organization has 1000 keys; delete one first.")
	}
	if err != nil {
		return "", tenancy.APIKey{}, err
	}
	full, err := secret.Token(tenancy.KeyPrefix, tenancy.KeyLength)
	if err != nil {
		return "", tenancy.APIKey{}, fault.Wrap(fault.Internal, op, "", err)
	}
	k := tenancy.APIKey{
		ID: id.New[tenancy.KeyTag](), Org: p.Org, Name: n.Name, Prefix: full[:len(tenancy.KeyPrefix)+shownOfKey],
		CreatedBy: p.Person, CreatedAt: now, ExpiresAt: n.ExpiresAt,
	}
	return full, k, tx.CreateKey(ctx, k, secret.HashToken(full), rotated)
}

// describeKey returns the name of a key with the first characters of the key, because several may have one name.
func describeKey(k tenancy.APIKey) string { return k.Name + " (" + k.Prefix + "…)" }

// recordKey records what was done to a key and sends mails to the owner of the organization and the person who did it.
func (a *Accounts) recordKey(ctx context.Context, tx *tenancystore.OrgTx, p tenancy.Principal, action tenancy.Action,
	kind mailKind, key tenancy.APIKey) error {
	if err := tx.Audit(ctx, p.Event(action, describeKey(key)), a.clock.Now()); err != nil || a.deps.Mail == nil {
		return err
	}
	o, err := tx.Organization(ctx)
	if err != nil {
		return err
	}
	members, err := tx.Members(ctx)
	if err != nil {
		return err
	}
	gate, err := tx.Leave(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Role != tenancy.RoleSuperAdmin && m.Person != p.Person {
			continue
		}
		n := notice{Name: o.Name, Zone: o.Timezone, Key: key.Name, By: p.Doer()}
		if err := a.notify(ctx, gate, kind, m.Email, n); err != nil {
			return err
		}
	}
	return nil
}

// RenameKey changes the name of a key. A key that is not the organization's is fault.NotFound.
func (a *Accounts) RenameKey(ctx context.Context, p tenancy.Principal, key, name string) (k tenancy.APIKey, err error) {
	const op = "tenancy.RenameKey"
	var in tenancy.Inputs
	name = in.Name("name", name, 1, 64)
	if err := in.Err(op); err != nil {
		return k, err
	}
	err = a.changeKey(ctx, op, p, key, func(tx *tenancystore.OrgTx, stored tenancystore.Key) error {
		k = stored.APIKey
		k.Name = name
		if err := tx.RenameKey(ctx, k.ID, name); err != nil {
			return err
		}
		return tx.Audit(ctx, p.Event(tenancy.ActionKeyRenamed, describeKey(k)), a.clock.Now())
	})
	return k, err
}

// mayBeStored reports whether a change that failed with the error may have been committed.
func mayBeStored(err error) bool { return pg.IsAway(err) || fault.Is(err, fault.Unavailable) }

// changeKey runs fn in a transaction that has locked a key, alone as inOrgAlone does. It returns
// NotFound if the key is not the organization's or has ended.
func (a *Accounts) changeKey(ctx context.Context, op string, p tenancy.Principal, key string,
	fn func(tx *tenancystore.OrgTx, stored tenancystore.Key) error) error {
	parsed, ok := id.Parse[tenancy.KeyTag](key)
	if !ok {
		return noKey(op)
	}
	err := a.inOrgAlone(ctx, op, p, func(tx *tenancystore.OrgTx) error {
		stored, err := tx.LockKey(ctx, parsed, a.clock.Now)
		if err != nil {
			return err
		}
		return fn(tx, stored)
	})
	if pg.IsNoRows(err) {
		return noKey(op)
	}
	return err
}

func noKey(op string) error { return fault.New(fault.NotFound, op, "There is no such API key.") }

// DeleteKey revokes a key. This process refuses the key at once, the others when they receive the revocation, which
// Postgres sends with the commit, and within five seconds if they receive none. A key that is not the organization's is
// fault.NotFound.
func (a *Accounts) DeleteKey(ctx context.Context, p tenancy.Principal, key string) error {
	var hash []byte
	err := a.changeKey(ctx, "tenancy.DeleteKey", p, key, func(tx *tenancystore.OrgTx, stored tenancystore.Key) error {
		hash = stored.Hash
		if err := tx.DeleteKey(ctx, stored.ID); err != nil {
			return err
		}
		return a.recordKey(ctx, tx, p, tenancy.ActionKeyRevoked, mailKeyRevoked, stored.APIKey)
	})
	if hash != nil && (err == nil || mayBeStored(err)) {
		a.keys.forget(hexOf(hash))
	}
	return err
}

// rotationRest is how long RotateKey without an id refuses to replace a key that was made by a
// rotation. Without this pause, a second click, or a retry after a lost response, would end the key
// that the first request returned.
const rotationRest = 10 * time.Minute

// RotateKey replaces a key with a new one of the same name and expiry. With the id "" it replaces
// the oldest key that has not been replaced. The old key works for overlap more hours, 0 to 72;
// with 0 it ends at once. If there is no key, it creates the first one. It needs what CreateKey
// needs. It returns fault.NotFound for a key that has ended, and fault.Conflict for a key that has
// been replaced and still works or, with "", that was made by a rotation in the last ten minutes.
func (a *Accounts) RotateKey(ctx context.Context, p tenancy.Principal, key string, overlap int, proof tenancy.Proof) (
	out tenancy.Rotation, err error) {
	const op = "tenancy.RotateKey"
	var in tenancy.Inputs
	in.Check(overlap >= 0 && overlap <= maxOverlap, "overlapHours", "must be from 0 to 72")
	if err := in.Err(op); err != nil {
		return out, err
	}
	parsed, ok := id.Parse[tenancy.KeyTag](key)
	if key != "" && !ok {
		return out, noKey(op)
	}
	if err := a.proveLately(ctx, op, p, proof); err != nil {
		return out, err
	}
	var hash []byte
	err = a.inOrgAlone(ctx, op, p, func(tx *tenancystore.OrgTx) error {
		out, hash = tenancy.Rotation{}, nil // it may run again
		stored, err := a.keyToRotate(ctx, tx, op, parsed)
		if pg.IsNoRows(err) && key == "" {
			return a.makeFirstKey(ctx, tx, op, p, &out)
		}
		if err != nil {
			return err
		}
		hash, out.Old = stored.Hash, stored.APIKey
		until := a.clock.Now().Add(time.Duration(overlap) * time.Hour)
		out.Old.OverlapUntil = &until
		if err := tx.ReplaceKey(ctx, stored.ID, until); err != nil {
			return err
		}
		next := tenancy.NewKey{Name: stored.Name, ExpiresAt: stored.ExpiresAt}
		if out.Full, out.New, err = a.makeKey(ctx, tx, op, p, next, true); err != nil {
			return err
		}
		return a.recordKey(ctx, tx, p, tenancy.ActionKeyRotated, mailKeyRotated, stored.APIKey)
	})
	if hash != nil {
		a.forgetRevoked(err, [][]byte{hash}) // the cache holds the old end
	}
	if pg.IsNoRows(err) {
		return out, noKey(op)
	}
	return out, err
}

// makeFirstKey makes the first key of an organization.
func (a *Accounts) makeFirstKey(ctx context.Context, tx *tenancystore.OrgTx, op string, p tenancy.Principal,
	out *tenancy.Rotation) (err error) {
	if out.Full, out.New, err = a.makeKey(ctx, tx, op, p, tenancy.NewKey{Name: "default"}, true); err != nil {
		return err
	}
	return a.recordKey(ctx, tx, p, tenancy.ActionKeyCreated, mailKeyCreated, out.New)
}

// keyToRotate locks and returns a key, or the oldest key for the zero id. It returns pgx.ErrNoRows
// if there is none, and Conflict for a key that must not be replaced now.
func (a *Accounts) keyToRotate(ctx context.Context, tx *tenancystore.OrgTx, op string, key tenancy.KeyID) (
	stored tenancystore.Key, err error) {
	chosen := !key.IsZero()
	if !chosen {
		if key, err = tx.OldestKey(ctx, a.clock.Now()); err != nil {
			return stored, err
		}
	}
	if stored, err = tx.LockKey(ctx, key, a.clock.Now); err != nil {
		return stored, err
	}
	if stored.OverlapUntil != nil {
		return stored, fault.New(fault.Conflict, op, "This API key has already been replaced; it works until "+
			stored.Ends().UTC().Format(time.RFC3339)+".")
	}
	if rests := stored.CreatedAt.Add(rotationRest).Sub(a.clock.Now()); !chosen && stored.Rotated && rests > 0 {
		return stored, &fault.Error{Kind: fault.Conflict, Op: op, RetryAfter: rests,
			Message: "The oldest API key was created by a rotation minutes ago: send its id to replace it now."}
	}
	return stored, nil
}

// Authenticate returns the principal of the API key in an Authorization header. A value that is not a live key is
// fault.Unauthenticated, and fault.Forbidden is one of an organization that the operator has suspended. It is
// fault.Unavailable when the database cannot be asked and no cached answer is recent enough.
func (a *Accounts) Authenticate(ctx context.Context, authorization string) (tenancy.Principal, error) {
	const op = "tenancy.Authenticate"
	if authorization == "" {
		return tenancy.Principal{}, fault.New(fault.Unauthenticated, op,
			"No API key found: send it in the Authorization header.")
	}
	denied := fault.New(fault.Unauthenticated, op, "Invalid API key.")
	if !strings.HasPrefix(authorization, tenancy.KeyPrefix) ||
		len(authorization) != len(tenancy.KeyPrefix)+tenancy.KeyLength {
		if strings.Contains(authorization, tenancy.KeyPrefix) {
			denied = fault.New(fault.Unauthenticated, op,
				"Invalid API key: it is incomplete or has extra characters around it.")
		}
		return tenancy.Principal{}, denied
	}
	hash := secret.HashToken(authorization)
	k, found, err := a.keys.find(ctx, hash)
	if err != nil {
		f := fault.Wrap(fault.Unavailable, op, "The database cannot look up API keys right now; try again soon.", err)
		f.RetryAfter = pg.RetryAfter
		return tenancy.Principal{}, f
	}
	if !found || k.EndsAt != nil && !a.clock.Now().Before(*k.EndsAt) {
		return tenancy.Principal{}, denied
	}
	if k.Suspended {
		return tenancy.Principal{}, fault.New(fault.Forbidden, op, "The operator has suspended this organization.")
	}
	return tenancy.Principal{
		Org: k.Org, Person: k.CreatedBy, Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaKey, Key: k.ID,
		Name: "API key " + authorization[:len(tenancy.KeyPrefix)+shownOfKey],
	}, nil
}

func (a *Accounts) findKeys(ctx context.Context, hashes [][]byte) (map[string]tenancystore.FoundKey, error) {
	return a.store.KeysByHash(ctx, hashes, a.clock.Now())
}

// hexOf returns the name of a hash in the key cache.
func hexOf(hash []byte) string { return hex.EncodeToString(hash) }
