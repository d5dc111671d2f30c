package instance

import (
	"context"

	"crier/tenancy"
	"crier/tenancy/db"
	instancestore "crier/tenancy/instance/store"
)

// SetInstanceAdmin makes the person with the given email address an instance administrator. If
// instance is false, it revokes that role and ends all impersonations by the person's sessions.
// SetInstanceAdmin is an operator command. It returns fault.NotFound if no account has the address.
func (s *Instance) SetInstanceAdmin(ctx context.Context, email string, instance bool) error {
	action := tenancy.ActionInstanceAdminEnded
	if instance {
		action = tenancy.ActionInstanceAdmin
	}
	return s.db.OfPerson(ctx, "tenancy.SetInstanceAdmin", email,
		func(tx *db.GateTx, person tenancy.Person) error {
			if err := instancestore.SetInstance(ctx, tx, person.ID, instance); err != nil {
				return err
			}
			if !instance {
				if err := s.sessions.EndActingOf(ctx, tx, person); err != nil {
					return err
				}
			}
			return s.db.AddInstanceEvent(ctx, tx, action, person.Email)
		})
}

// AllOrganizations returns at most limit organizations, ordered by id, starting after the given id.
// It is an operator command.
func (s *Instance) AllOrganizations(ctx context.Context, after tenancy.OrgID, limit int) (
	out []tenancy.Organization, err error) {
	const op = "tenancy.AllOrganizations"
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		out, err = instancestore.ListOrganizations(ctx, tx, after, limit)
		return err
	})
	return out, err
}

// Events returns at most limit instance events, newest first. It is an operator command.
func (s *Instance) Events(ctx context.Context, limit int) (out []tenancy.InstanceEvent, err error) {
	const op = "tenancy.Events"
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		out, err = instancestore.InstanceEvents(ctx, tx, limit)
		return err
	})
	return out, err
}
