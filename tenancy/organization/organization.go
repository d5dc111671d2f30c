package organization

import (
	"context"
	"slices"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	organizationstore "crier/tenancy/organization/store"
)

// Organizations returns the organizations that the principal's person belongs to, oldest membership
// first. It leaves out disabled memberships. An organization that is scheduled for deletion is
// included only for its owner, who can restore it. The organizations' time zones are empty.
func (s *Organizations) Organizations(
	ctx context.Context, p tenancy.Principal,
) (out []tenancy.OrganizationOf, err error) {
	const op = "tenancy.Organizations"
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		out, err = db.Memberships(ctx, tx, p.Person)
		return err
	})
	return slices.DeleteFunc(out, func(o tenancy.OrganizationOf) bool {
		return o.Disabled || o.DeletedAt != nil && o.Role != tenancy.RoleSuperAdmin
	}), err
}

// Organization returns the principal's organization. It returns fault.NotFound if the organization
// no longer exists.
func (s *Organizations) Organization(ctx context.Context, p tenancy.Principal) (out tenancy.Organization, err error) {
	const op = "tenancy.Organization"
	err = s.db.InOrg(ctx, op, p.Org, func(tx *db.OrgTx) error {
		out, err = db.ReadOrganization(ctx, tx)
		return err
	})
	return out, noOrganization(op, err)
}

// ChooseOrganization returns fault.Forbidden unless the principal's person can switch to the
// organization.
func (s *Organizations) ChooseOrganization(ctx context.Context, p tenancy.Principal, org string) error {
	const op = "tenancy.ChooseOrganization"
	all, err := s.Organizations(ctx, p)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.ID.String() == org && o.DeletedAt == nil {
			return nil
		}
	}
	return fault.New(fault.Forbidden, op, "You are not a member of this organization.")
}

// UpdateOrganization changes settings of the principal's organization and returns the organization.
// At least one setting must be given. A new time zone applies only to new channels; existing
// channels and recurring posts keep their time zones. UpdateOrganization returns fault.NotFound if
// the organization no longer exists.
func (s *Organizations) UpdateOrganization(ctx context.Context, p tenancy.Principal, c tenancy.OrganizationChange) (
	out tenancy.Organization, err error) {
	const op = "tenancy.UpdateOrganization"
	if err := c.Clean(op); err != nil {
		return out, err
	}
	err = s.db.InOrgAs(ctx, op, p, func(tx *db.OrgTx) error {
		if out, err = db.LockOrganization(ctx, tx); err != nil {
			return err
		}
		if c.Name != nil {
			out.Name = *c.Name
		}
		if c.Description != nil {
			out.Description = *c.Description
		}
		if err := db.UpdateOrganization(ctx, tx, out); err != nil {
			return err
		}
		if c.Timezone != nil {
			out.Timezone = db.ZoneOf(*c.Timezone)
			if err := db.SetTimezone(ctx, tx, out.Timezone); err != nil {
				return err
			}
		}
		return db.Audit(ctx, tx, p.Event(tenancy.ActionOrganizationChanged, out.Name), s.clock.Now())
	})
	return out, noOrganization(op, err)
}

// Senders returns the mailboxes whose email limits apply to the principal: the mailbox of the
// principal's person and the mailbox of the organization's creator. If the creator has left, the
// owner's mailbox takes the place of the creator's. If the person has left, Senders leaves out
// their mailbox.
//
// Each mailbox is represented by a hash, which is the same for all addresses of the mailbox.
func (s *Organizations) Senders(ctx context.Context, p tenancy.Principal) (mailboxes []string, err error) {
	const op = "tenancy.Senders"
	err = s.db.InOrg(ctx, op, p.Org, func(tx *db.OrgTx) error {
		mailboxes, err = organizationstore.Senders(ctx, tx, p.Person)
		return err
	})
	return mailboxes, err
}

// noOrganization returns NotFound if err means that the organization no longer exists, and err
// itself otherwise.
func noOrganization(op string, err error) error {
	if pg.IsNoRows(err) {
		return fault.New(fault.NotFound, op, "There is no such organization.")
	}
	return err
}
