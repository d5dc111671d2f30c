package key

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	keystore "crier/tenancy/key/store"
	"crier/tenancy/notice"
)

// RenameKey changes a key's name. It returns fault.NotFound if the organization has no such key.
func (s *Keys) RenameKey(ctx context.Context, p tenancy.Principal, key, name string) (k tenancy.APIKey, err error) {
	const op = "tenancy.RenameKey"
	var in tenancy.Inputs
	name = in.Name("name", name, 1, 64)
	if err := in.Err(op); err != nil {
		return k, err
	}
	err = s.changeKey(ctx, op, p, key, func(tx *db.OrgTx, stored keystore.Key) error {
		k = stored.APIKey
		k.Name = name
		if err := keystore.RenameKey(ctx, tx, k.ID, name); err != nil {
			return err
		}
		return db.Audit(ctx, tx, p.Event(tenancy.ActionKeyRenamed, k.Label()), s.clock.Now())
	})
	return k, err
}

// changeKey locks a key and then runs fn, both within InOrgAlone. It returns NotFound if the
// organization has no such key or the key no longer works.
func (s *Keys) changeKey(ctx context.Context, op string, p tenancy.Principal, key string,
	fn func(tx *db.OrgTx, stored keystore.Key) error) error {
	parsed, ok := id.Parse[tenancy.KeyTag](key)
	if !ok {
		return noKey(op)
	}
	err := s.db.InOrgAlone(ctx, op, p, func(tx *db.OrgTx) error {
		stored, err := keystore.LockKey(ctx, tx, parsed, s.clock.Now)
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

// DeleteKey revokes a key. This process rejects the key immediately. Other processes reject it once
// they receive the revocation, which Postgres sends when the transaction commits. A process that
// does not receive revocations rejects the key within five seconds. DeleteKey returns
// fault.NotFound if the organization has no such key.
func (s *Keys) DeleteKey(ctx context.Context, p tenancy.Principal, key string) error {
	var hash []byte
	err := s.changeKey(ctx, "tenancy.DeleteKey", p, key, func(tx *db.OrgTx, stored keystore.Key) error {
		hash = stored.Hash
		if err := keystore.DeleteKey(ctx, tx, stored.ID); err != nil {
			return err
		}
		return s.recordKey(ctx, tx, p, tenancy.ActionKeyRevoked, notice.KeyRevoked, stored.APIKey)
	})
	if hash != nil && (err == nil || mayBeStored(err)) {
		s.cache.Forget(hash)
	}
	return err
}

// ForgetRevoked removes keys from the cache after they have been revoked, so that this process
// rejects them. hashes are the hashes of the keys, and err is the result of revoking them. If err
// means that the keys have not been revoked, ForgetRevoked does nothing.
func (s *Keys) ForgetRevoked(err error, hashes [][]byte) {
	if err != nil && !mayBeStored(err) {
		return
	}
	for _, hash := range hashes {
		s.cache.Forget(hash)
	}
}

// mayBeStored reports whether a change that returned err may still have been committed.
func mayBeStored(err error) bool { return pg.IsAway(err) || fault.Is(err, fault.Unavailable) }

func noKey(op string) error { return fault.New(fault.NotFound, op, "There is no such API key.") }
