package password

import (
	"context"

	"crier/platform/fault"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/entry"
	"crier/tenancy/notice"
	passwordstore "crier/tenancy/password/store"
	"crier/tenancy/passwords"
)

// ChangePassword sets the password of the principal's person and ends all other sessions. The proof
// contains the old password. A person without a password can set a first password; see Prove in
// package tenancy/proof.
func (s *Passwords) ChangePassword(
	ctx context.Context, p tenancy.Principal, proof tenancy.Proof, password string,
) error {
	const op = "tenancy.ChangePassword"
	if err := passwords.Check(op, "newPassword", password); err != nil {
		return err
	}
	proved, err := s.proofs.Prove(ctx, op, p, proof)
	if err != nil {
		return err
	}
	hash, err := s.proofs.Hash(ctx, p.From.Site, password)
	if err != nil {
		return err
	}
	now := s.clock.Now()
	return s.db.InPerson(ctx, op, p, func(tx *db.GateTx, person tenancy.Person) error {
		if person.PasswordHash != proved.PasswordHash { // a reset came first
			return fault.New(fault.Invalid, op, "The password is wrong.")
		}
		if err := passwordstore.SetPassword(ctx, tx, person.ID, hash); err != nil {
			return err
		}
		if _, err := entry.EndSessions(ctx, tx, person.ID, p.Session, p.From.Device); err != nil {
			return err
		}
		if err := db.AuditPerson(ctx, tx, person.ID, p.Event(tenancy.ActionPasswordChanged, ""), now); err != nil {
			return err
		}
		return s.notices.Notify(ctx, tx, notice.PasswordChanged, person.Email, notice.Notice{Address: p.From.Client})
	})
}
