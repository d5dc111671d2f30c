package service

import (
	"context"
	"slices"

	"crier/platform/fault"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// foundMemberships is the number of memberships that a search answers.
const foundMemberships = 10

// actAs returns the principal of a membership for an administrator of the instance, who stays behind it. A membership
// that is gone is fault.Forbidden: to act as oneself instead would be a surprise.
func (a *Accounts) actAs(ctx context.Context, p tenancy.Principal, membership string) (tenancy.Principal, error) {
	const op = "tenancy.actAs"
	person, o, err := a.membership(ctx, op, membership)
	if err != nil {
		return tenancy.Principal{}, err
	}
	as := tenancy.Principal{
		Org: o.ID, Person: person.ID, Role: o.Role, Via: tenancy.ViaSession, Session: p.Session, Name: person.Email,
		Behind: p.Person, BehindName: p.Name, From: p.From,
	}
	if o.SuspendedAt != nil {
		as.Access = tenancy.AccessSuspended
	}
	return as, nil
}

// membership returns the person and the organization of an enabled membership, or Forbidden.
func (a *Accounts) membership(ctx context.Context, op, membership string) (
	person tenancy.Person, o tenancy.OrganizationOf, err error) {
	gone := fault.New(fault.Forbidden, op, "There is no such membership to act as; end the impersonation.")
	org, id, ok := tenancy.ParseMembership(membership)
	if !ok {
		return person, o, gone
	}
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		all, err := tx.Memberships(ctx, id)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(o tenancy.OrganizationOf) bool {
			return o.ID == org && !o.Disabled && o.DeletedAt == nil
		})
		if i < 0 {
			return gone
		}
		o = all[i]
		person, err = tx.Person(ctx, id)
		if err == nil && person.DeletedAt != nil {
			return gone
		}
		return err
	})
	return person, o, err
}

// Impersonable returns at most ten memberships whose person or organization has the text in its name or address. Only
// an administrator of the instance may ask.
func (a *Accounts) Impersonable(ctx context.Context, p tenancy.Principal, text string) ([]tenancy.Impersonable, error) {
	const op = "tenancy.Impersonable"
	var in tenancy.Inputs
	text = in.Text("name", text, 254)
	if err := in.Err(op); err != nil {
		return nil, err
	}
	var out []tenancy.Impersonable
	err := a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		if err := checkInstance(ctx, tx, op, p); err != nil {
			return err
		}
		found, err := tx.Search(ctx, text, foundMemberships)
		out = make([]tenancy.Impersonable, len(found))
		for i, f := range found {
			out[i] = tenancy.Impersonable{
				ID: tenancy.FormatMembership(f.ID, f.Person), Role: f.Role,
				Organization: tenancy.Organization{ID: f.ID, Name: f.Name, CreatedAt: f.CreatedAt},
				Person:       tenancy.Person{ID: f.Person, Email: f.Email, Name: f.PersonName},
			}
		}
		return err
	})
	return out, err
}

// checkInstance returns Forbidden unless the principal's person is an administrator of the instance now.
func checkInstance(ctx context.Context, tx *tenancystore.GateTx, op string, p tenancy.Principal) error {
	person, err := tx.Person(ctx, p.Person)
	if err == nil && (!person.Instance || !p.Behind.IsZero()) {
		return fault.New(fault.Forbidden, op, "Only an administrator of the instance may do this.")
	}
	return err
}

// Impersonate records in the audit log of the organization, and by a mail to the person, that the principal acts as the
// membership from now on. With "" it checks nothing: the end of an impersonation is the end of its cookie.
func (a *Accounts) Impersonate(ctx context.Context, p tenancy.Principal, membership string) error {
	const op = "tenancy.Impersonate"
	if membership == "" {
		return nil
	}
	person, o, err := a.membership(ctx, op, membership)
	if err != nil {
		return err
	}
	return a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		if err := checkInstance(ctx, tx, op, p); err != nil {
			return err
		}
		event := tenancy.Principal{
			Person: person.ID, Name: person.Email, Via: tenancy.ViaInstance, BehindName: p.Name, From: p.From,
		}.Event(tenancy.ActionImpersonated, person.Email)
		if err := tx.AuditOrg(ctx, o.ID, event, a.clock.Now()); err != nil {
			return err
		}
		err := tx.AddInstanceEvent(ctx, tenancy.InstanceEvent{
			At: a.clock.Now(), Actor: p.Name, Action: tenancy.ActionImpersonated, Subject: person.Email,
		})
		if err != nil {
			return err
		}
		return a.notify(ctx, tx, mailImpersonated, person.Email, notice{By: p.Name})
	})
}
