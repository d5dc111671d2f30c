package key

import (
	"context"

	"crier/tenancy"
	"crier/tenancy/db"
	keystore "crier/tenancy/key/store"
)

// Keys returns the active keys of the principal's organization, newest first.
func (s *Keys) Keys(ctx context.Context, p tenancy.Principal) ([]tenancy.KeyOf, error) {
	var out []tenancy.KeyOf
	err := s.db.InOrg(ctx, "tenancy.Keys", p.Org, func(tx *db.OrgTx) error {
		keys, err := keystore.ListKeys(ctx, tx, s.clock.Now(), maxKeys+1)
		out = make([]tenancy.KeyOf, len(keys))
		for i, k := range keys {
			out[i] = k.KeyOf
		}
		return err
	})
	return out, err
}
