package factor

import (
	"context"

	"crier/platform/fault"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/entry"
	factorstore "crier/tenancy/factor/store"
	"crier/tenancy/notice"
	"crier/tenancy/proof"
)

// DisableMFA deletes the person's second factor and recovery codes. The proof must include a code
// from the second factor or a recovery code. If one of the person's organizations requires a second
// factor, DisableMFA returns fault.Forbidden unless the code is a recovery code.
//
// A person who has lost the authenticator can therefore use a recovery code and then enroll a new
// authenticator. Until then, the person has no access to organizations that require a second
// factor.
func (s *Factors) DisableMFA(ctx context.Context, p tenancy.Principal, given tenancy.Proof) error {
	const op = "tenancy.DisableMFA"
	if _, _, err := s.proofs.ProvePassword(ctx, op, p, given.Password); err != nil {
		return err
	}
	code, recovery := proof.SplitCode(given.Code)
	return s.proofs.WithCode(ctx, op, p, code, recovery, func(tx *db.GateTx, person tenancy.Person) error {
		required, err := proof.RequiresMFA(ctx, tx, p.Person)
		if err != nil {
			return err
		}
		if required && recovery == "" {
			return fault.New(fault.Forbidden, op, "One of your organizations requires a second factor.")
		}
		if err := factorstore.DeleteFactor(ctx, tx, p.Person); err != nil {
			return err
		}
		if err := db.AuditPerson(ctx, tx, p.Person, p.Event(tenancy.ActionMFAOff, ""), s.clock.Now()); err != nil {
			return err
		}
		return s.notices.Notify(ctx, tx, notice.MFAOff, person.Email, notice.Notice{Address: p.From.Client})
	})
}

// DisableMFAOf deletes the second factor of the person with the given email address and ends all of
// that person's sessions. It is an operator command. It returns fault.NotFound if no account has
// the address.
func (s *Factors) DisableMFAOf(ctx context.Context, email string) error {
	const op = "tenancy.DisableMFAOf"
	return s.db.OfPerson(ctx, op, email, func(tx *db.GateTx, person tenancy.Person) error {
		if err := factorstore.DeleteFactor(ctx, tx, person.ID); err != nil {
			return err
		}
		if _, err := entry.EndSessions(ctx, tx, person.ID, tenancy.SessionID{}, ""); err != nil {
			return err
		}
		event := db.InstanceEvent(db.Operator, tenancy.ActionMFAOff, person.Email)
		if err := db.AuditPerson(ctx, tx, person.ID, event, s.clock.Now()); err != nil {
			return err
		}
		if err := s.notices.Notify(ctx, tx, notice.MFAOff, person.Email, notice.Notice{Address: db.Operator}); err != nil {
			return err
		}
		return s.db.AddInstanceEvent(ctx, tx, tenancy.ActionMFAReset, person.Email)
	})
}
