package key

import (
	"context"

	"crier/tenancy"
	"crier/tenancy/db"
	keystore "crier/tenancy/key/store"
)

// TakeMade locks and returns the active keys that a person created. If maker.Revoke is set, it
// deletes these keys and also returns their hashes. The caller must pass the hashes to
// ForgetRevoked after the commit.
func (s *Keys) TakeMade(ctx context.Context, tx *db.OrgTx, maker tenancy.Maker) (
	keys []tenancy.APIKey, revoked [][]byte, err error) {
	made, err := keystore.KeysBy(ctx, tx, maker.Person, s.clock.Now())
	if err != nil {
		return nil, nil, err
	}
	for _, k := range made {
		keys, revoked = append(keys, k.APIKey), append(revoked, k.Hash)
	}
	if !maker.Revoke {
		return keys, nil, nil
	}
	return keys, revoked, keystore.DeleteKeysBy(ctx, tx, maker.Person)
}
