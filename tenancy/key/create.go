package key

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
	keystore "crier/tenancy/key/store"
	"crier/tenancy/notice"
)

// CreateKey creates an API key for the principal's organization and returns the full key, which
// cannot be retrieved later. CreateKey requires a sign-in within the last ten minutes, or a proof.
//
// The name must have 1 to 64 characters. ExpiresAt, if set, must be in the future and before the
// year 10000. Otherwise, CreateKey returns fault.Invalid. It returns fault.Conflict if the
// organization already has 1000 keys.
func (s *Keys) CreateKey(ctx context.Context, p tenancy.Principal, n tenancy.NewKey) (
	full string, k tenancy.APIKey, err error) {
	const op = "tenancy.CreateKey"
	var in tenancy.Inputs
	n.Name = in.Name("name", n.Name, 1, 64)
	in.Check(n.ExpiresAt == nil || n.ExpiresAt.After(s.clock.Now()), "expiresAt", "must be in the future")
	in.Check(n.ExpiresAt == nil || n.ExpiresAt.Year() < 10_000, "expiresAt", "must be before the year 10000")
	if err := in.Err(op); err != nil {
		return "", k, err
	}
	if err := s.proofs.ProveLately(ctx, op, p, n.Proof); err != nil {
		return "", k, err
	}
	err = s.db.InOrgAs(ctx, op, p, func(tx *db.OrgTx) error {
		full, k, err = s.makeKey(ctx, tx, op, p, n, false)
		if err != nil {
			return err
		}
		return s.recordKey(ctx, tx, p, tenancy.ActionKeyCreated, notice.KeyCreated, k)
	})
	return full, k, err
}

const (
	// maxKeys is the maximum number of active keys per organization.
	maxKeys = 1000
	// shownOfKey is the number of characters of a key's random part that are shown, so that people
	// can recognize the key.
	shownOfKey = 4
)

// makeKey inserts a new key. It locks the organization, so that concurrent requests cannot exceed
// the maximum number of keys.
func (s *Keys) makeKey(ctx context.Context, tx *db.OrgTx, op string, p tenancy.Principal,
	n tenancy.NewKey, rotated bool) (string, tenancy.APIKey, error) {
	if _, err := db.LockOrganization(ctx, tx); err != nil {
		return "", tenancy.APIKey{}, err
	}
	now := s.clock.Now()
	count, err := keystore.CountKeys(ctx, tx, now)
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
	return full, k, keystore.CreateKey(ctx, tx, k, secret.HashToken(full), rotated)
}

// recordKey adds an audit entry for an action on a key, and emails the organization's owner and the
// person who took the action.
func (s *Keys) recordKey(ctx context.Context, tx *db.OrgTx, p tenancy.Principal, action tenancy.Action,
	kind notice.Kind, key tenancy.APIKey) error {
	if err := db.Audit(ctx, tx, p.Event(action, key.Label()), s.clock.Now()); err != nil || !s.notices.Enabled() {
		return err
	}
	o, err := db.ReadOrganization(ctx, tx)
	if err != nil {
		return err
	}
	members, err := db.Members(ctx, tx)
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
		n := notice.Notice{Name: o.Name, Zone: o.Timezone, Key: key.Name, By: p.Doer()}
		if err := s.notices.Notify(ctx, gate, kind, m.Email, n); err != nil {
			return err
		}
	}
	return nil
}
