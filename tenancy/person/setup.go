package person

import (
	"context"

	"crier/tenancy"
	"crier/tenancy/db"
	personstore "crier/tenancy/person/store"
)

// Setup sets the name of the principal's person and, if the person owns the organization, the
// organization's time zone. It does not overwrite values that were chosen before.
func (s *People) Setup(ctx context.Context, p tenancy.Principal, wanted tenancy.Setup) error {
	const op = "tenancy.Setup"
	var in tenancy.Inputs
	name := in.Name("fullname", wanted.Name, 0, 128)
	in.Name("company", wanted.Company, 0, 128)
	if err := in.Err(op); err != nil {
		return err
	}
	return s.db.InPerson(ctx, op, p, func(tx *db.GateTx, _ tenancy.Person) error {
		if err := s.fillName(ctx, tx, p, name); err != nil {
			return err
		}
		zone := db.ZoneOf(wanted.Timezone)
		if p.Role != tenancy.RoleSuperAdmin || p.Org.IsZero() || zone == "" || p.Access == tenancy.AccessSuspended {
			return nil
		}
		if err := s.db.Confirm(ctx, tx, p); err != nil {
			return err
		}
		org, err := tx.Enter(ctx, p.Org)
		if err != nil {
			return err
		}
		o, err := db.LockOrganization(ctx, org)
		if err != nil {
			return err
		}
		if filled, err := db.FillTimezone(ctx, org, zone); err != nil || !filled {
			return err
		}
		return db.Audit(ctx, org, p.Event(tenancy.ActionOrganizationChanged, o.Name), s.clock.Now())
	})
}

func (s *People) fillName(ctx context.Context, tx *db.GateTx, p tenancy.Principal, name string) error {
	filled, err := personstore.FillName(ctx, tx, p.Person, name)
	if err != nil || !filled {
		return err
	}
	return s.db.AuditActed(ctx, tx, p, tenancy.ActionProfileChanged)
}
