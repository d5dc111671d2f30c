package login

import (
	"cmp"
	"context"

	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
	loginstore "crier/tenancy/login/store"
)

// Restore completes a sign-in at StepRestore. It undoes the deletion of the account and of the
// organizations that were deleted with it. Posts that became due in the meantime are not published.
func (s *Logins) Restore(ctx context.Context, token string, from tenancy.Source) (out tenancy.SignIn, err error) {
	const op = "tenancy.Restore"
	var refusal error
	var restored []tenancy.OrgID
	hash := secret.HashToken(token)
	now, err := s.db.Time(ctx, op)
	if err != nil {
		return out, err
	}
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		var person tenancy.Person
		person, refusal, err = s.takeStep(ctx, tx, op, hash, tenancy.StepRestore)
		if err != nil || refusal != nil {
			return err
		}
		if err := loginstore.DeleteStep(ctx, tx, hash); err != nil {
			return err
		}
		if restored, err = s.deletions.RestoreAccount(ctx, tx, person, now, from); err != nil {
			return err
		}
		out, err = s.entry.StartSession(ctx, tx, op, person, from)
		return err
	})
	if err := cmp.Or(err, refusal); err != nil {
		return tenancy.SignIn{}, err
	}
	return out, s.access.AccessChanged(ctx, restored...)
}
