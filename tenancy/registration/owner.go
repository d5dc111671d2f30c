package registration

import (
	"context"

	"crier/platform/id"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/passwords"
)

// NewOwner is the input for CreateOwner. Email is stored in lower case without surrounding spaces.
type NewOwner struct {
	Email, Name, Password string
	// Organization is the organization's name, which has 1 to 128 characters.
	Organization string
	// Instance makes the person an instance administrator.
	Instance bool
}

// CreateOwner creates a person and an organization that the person owns, in one transaction, and
// returns the principal. It returns fault.Conflict if the email address is in use. It returns
// fault.Invalid if the password would be rejected at registration or if another input is invalid.
func (s *Registrations) CreateOwner(ctx context.Context, n NewOwner) (tenancy.Principal, error) {
	const op = "tenancy.CreateOwner"
	var in tenancy.Inputs
	email, name := in.Email("email", n.Email), in.Name("name", n.Name, 0, 128)
	organization := in.Name("organization", n.Organization, 1, 128)
	if err := in.Err(op); err != nil {
		return tenancy.Principal{}, err
	}
	if err := passwords.Check(op, "password", n.Password); err != nil {
		return tenancy.Principal{}, err
	}
	hash, err := s.proofs.Hash(ctx, "", n.Password) // the operator has no site
	if err != nil {
		return tenancy.Principal{}, err
	}
	person := tenancy.Person{
		ID: id.New[tenancy.PersonTag](), Email: email, Name: name, PasswordHash: hash, Instance: n.Instance,
		CreatedAt: s.clock.Now(),
	}
	p := tenancy.Principal{Person: person.ID, Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaInstance, Name: email}
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		if err := db.CreatePerson(ctx, tx, person); err != nil {
			return err
		}
		if p.Org, err = s.organizations.MakeOrganization(ctx, tx, p, tenancy.PersonID{}, organization); err != nil {
			return err
		}
		return s.db.AddInstanceEvent(ctx, tx, tenancy.ActionPersonCreated, email)
	})
	return p, db.AccountFault(op, err)
}
