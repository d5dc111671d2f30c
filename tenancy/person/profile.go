package person

import (
	"context"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	personstore "crier/tenancy/person/store"
)

// Self returns the principal's person and organization. The organization is zero if the person
// belongs to none.
func (s *People) Self(ctx context.Context, p tenancy.Principal) (
	person tenancy.Person, org tenancy.OrganizationOf, err error) {
	const op = "tenancy.Self"
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		if person, err = db.ReadPerson(ctx, tx, p.Person); err != nil || p.Org.IsZero() {
			return err
		}
		entered, err := tx.Enter(ctx, p.Org)
		if err != nil {
			return err
		}
		org.Organization, err = db.ReadOrganization(ctx, entered)
		org.Role = p.Role
		return err
	})
	if pg.IsNoRows(err) {
		return person, org, fault.New(fault.Unauthenticated, op, "Sign in first.")
	}
	return person, org, err
}

// SetProfile replaces the profile of the principal's person. The name must have 3 to 128 characters
// and the bio at most 500.
func (s *People) SetProfile(ctx context.Context, p tenancy.Principal, profile tenancy.Profile) (
	person tenancy.Person, err error) {
	const op = "tenancy.SetProfile"
	var in tenancy.Inputs
	profile.Name = in.Name("fullname", profile.Name, 3, 128)
	profile.Bio = in.Text("bio", profile.Bio, 500)
	if err := in.Err(op); err != nil {
		return person, err
	}
	err = s.db.InPerson(ctx, op, p, func(tx *db.GateTx, _ tenancy.Person) error {
		if err := personstore.SetProfile(ctx, tx, p.Person, profile); err != nil {
			return err
		}
		if err := s.db.AuditActed(ctx, tx, p, tenancy.ActionProfileChanged); err != nil {
			return err
		}
		person, err = db.ReadPerson(ctx, tx, p.Person)
		return err
	})
	return person, err
}
