package factor

import (
	"context"

	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	factorstore "crier/tenancy/factor/store"
	"crier/tenancy/proof"
)

// MFAStatus returns the state of the principal's second factor.
func (s *Factors) MFAStatus(ctx context.Context, p tenancy.Principal) (out tenancy.MFAStatus, err error) {
	const op = "tenancy.MFAStatus"
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		out = tenancy.MFAStatus{}
		f, err := proof.LockFactor(ctx, tx, p.Person)
		if err != nil && !pg.IsNoRows(err) {
			return err
		}
		if out.Required, err = proof.RequiresMFA(ctx, tx, p.Person); err != nil || f.ConfirmedAt == nil {
			return err
		}
		out.Enabled, out.EnabledAt = true, f.ConfirmedAt
		out.RecoveryCodesLeft, err = factorstore.CountRecoveryCodes(ctx, tx, p.Person)
		return err
	})
	return out, err
}
