package organization

import (
	"context"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/proof"
)

// MFAPolicy reports whether the principal's organization requires a second factor.
func (s *Organizations) MFAPolicy(ctx context.Context, p tenancy.Principal) (bool, error) {
	o, err := s.Organization(ctx, p)
	return o.RequiresMFA, err
}

// SetMFAPolicy sets whether the principal's organization requires a second factor. If required is
// true, members without a second factor immediately lose access to the organization. SetMFAPolicy
// returns fault.Conflict if required is true and the principal's person has no second factor.
func (s *Organizations) SetMFAPolicy(ctx context.Context, p tenancy.Principal, required bool) error {
	const op = "tenancy.SetMFAPolicy"
	if err := db.RejectImpersonator(op, p); err != nil {
		return err
	}
	return s.db.InPerson(ctx, op, p, func(tx *db.GateTx, _ tenancy.Person) error {
		f, err := proof.LockFactor(ctx, tx, p.Person)
		if err != nil && !pg.IsNoRows(err) {
			return err
		}
		if required && f.ConfirmedAt == nil {
			return fault.New(fault.Conflict, op, "Enable a second factor for your own account first.")
		}
		if err := s.db.Confirm(ctx, tx, p); err != nil {
			return err
		}
		org, err := tx.Enter(ctx, p.Org)
		if err != nil {
			return err
		}
		o, err := db.LockOrganization(ctx, org)
		if err != nil || o.RequiresMFA == required {
			return err
		}
		o.RequiresMFA = required
		if err := db.UpdateOrganization(ctx, org, o); err != nil {
			return err
		}
		subject := "not required"
		if required {
			subject = "required"
		}
		return db.Audit(ctx, org, p.Event(tenancy.ActionMFAPolicy, subject), s.clock.Now())
	})
}
