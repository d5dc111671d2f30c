package service

import (
	"context"
	"errors"
	"slices"

	"crier/platform/fault"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// foundMemberships is the number of memberships that a search answers.
const foundMemberships = 10

// actAs returns the principal of a membership for an administrator of the instance, who stays behind it. The first time
// that the session acts as the member is recorded like in Impersonate. A membership that is gone is fault.Forbidden: to
// act as oneself instead would be a surprise.
func (a *Accounts) actAs(ctx context.Context, p tenancy.Principal, membership string) (as tenancy.Principal, err error) {
	const op = "tenancy.actAs"
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		person, o, err := a.impersonate(ctx, tx, op, p, membership)
		as = tenancy.Principal{
			Org: o.ID, Person: person.ID, Role: o.Role, Via: tenancy.ViaSession, Session: p.Session, Name: person.Email,
			Behind: p.Person, BehindName: p.Name, From: p.From,
		}
		if o.SuspendedAt != nil {
			as.Access = tenancy.AccessSuspended
		}
		return err
	})
	return as, err
}

// impersonate returns the person and the organization of an enabled membership, or Forbidden. The first time that the
// session of p acts as the member it records so in both audit logs, and by a mail to the person.
func (a *Accounts) impersonate(
	ctx context.Context, tx *tenancystore.GateTx, op string, p tenancy.Principal, membership string,
) (person tenancy.Person, o tenancy.OrganizationOf, err error) {
	person, o, err = findMembership(ctx, tx, op, membership)
	if err != nil {
		return person, o, err
	}
	began, err := tx.BeginImpersonation(ctx, p.Session, o.ID, person.ID, a.clock.Now())
	if err != nil || !began {
		return person, o, err
	}
	if err := a.auditActing(ctx, tx, p, tenancy.ActionImpersonated, o.ID, person); err != nil {
		return person, o, err
	}
	return person, o, a.notify(ctx, tx, mailImpersonated, person.Email, notice{By: p.Name})
}

// auditActing records that an administrator began or ended to act as a person. The administrator is p, or behind it.
func (a *Accounts) auditActing(ctx context.Context, tx *tenancystore.GateTx, p tenancy.Principal, action tenancy.Action,
	org tenancy.OrgID, person tenancy.Person) error {
	now, admin := a.clock.Now(), p.Doer()
	event := tenancy.Principal{
		Person: person.ID, Name: person.Email, Via: tenancy.ViaInstance, BehindName: admin, From: p.From,
	}.Event(action, person.Email)
	if err := tx.AuditOrg(ctx, org, event, now); err != nil {
		return err
	}
	return tx.AddInstanceEvent(ctx, tenancy.InstanceEvent{At: now, Actor: admin, Action: action, Subject: person.Email})
}

// auditActed records what an administrator of the instance has changed of the person as whom the administrator acts, in
// the organization of the membership. What people change of themselves is not recorded.
func (a *Accounts) auditActed(ctx context.Context, tx *tenancystore.GateTx, p tenancy.Principal, action tenancy.Action) error {
	if p.Behind.IsZero() {
		return nil
	}
	return tx.AuditOrg(ctx, p.Org, p.Event(action, p.Name), a.clock.Now())
}

// RecordActed appends an audit entry for a request to change something that an instance
// administrator makes while impersonating a member.
func (a *Accounts) RecordActed(ctx context.Context, p tenancy.Principal, request string) error {
	return a.Record(ctx, p, tenancy.ActionImpersonatedRequest, request)
}

// endActing ends what a session of an administrator acts as, and records that. The administrator is p, or behind it.
func (a *Accounts) endActing(ctx context.Context, tx *tenancystore.GateTx, p tenancy.Principal) error {
	ended, err := tx.EndImpersonations(ctx, p.Session)
	for _, e := range ended {
		person := tenancy.Person{ID: e.Person, Email: e.Email}
		err = errors.Join(err, a.auditActing(ctx, tx, p, tenancy.ActionImpersonationEnded, e.Org, person))
	}
	return err
}

// endActingOf ends what all sessions of an administrator act as, and records that.
func (a *Accounts) endActingOf(ctx context.Context, tx *tenancystore.GateTx, admin tenancy.Person) error {
	sessions, err := tx.ActingSessions(ctx, admin.ID)
	for _, session := range sessions {
		err = errors.Join(err, a.endActing(ctx, tx, tenancy.Principal{Session: session, Name: admin.Email}))
	}
	return err
}

// findMembership returns the person and the organization of an enabled membership, or Forbidden.
func findMembership(ctx context.Context, tx *tenancystore.GateTx, op, membership string) (
	person tenancy.Person, o tenancy.OrganizationOf, err error) {
	gone := fault.New(fault.Forbidden, op, "There is no such membership to act as; end the impersonation.")
	org, id, ok := tenancy.ParseMembership(membership)
	if !ok {
		return person, o, gone
	}
	all, err := tx.Memberships(ctx, id)
	if err != nil {
		return person, o, err
	}
	i := slices.IndexFunc(all, func(o tenancy.OrganizationOf) bool {
		return o.ID == org && !o.Disabled && o.DeletedAt == nil
	})
	if i < 0 {
		return person, o, gone
	}
	person, err = tx.Person(ctx, id)
	if err == nil && person.DeletedAt != nil {
		return person, o, gone
	}
	return person, all[i], err
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

// Impersonate records that the session of the principal acts as the membership from now on: in the audit log of the
// organization, in the events of the instance, and by a mail to the person. With "" it ends what the session acts as,
// and records that, as Logout does. A session that ends otherwise ends it without a record.
func (a *Accounts) Impersonate(ctx context.Context, p tenancy.Principal, membership string) error {
	const op = "tenancy.Impersonate"
	return a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		if membership != "" {
			if err := a.confirmSession(ctx, tx.Querier(), p); err != nil {
				return err
			}
			if err := checkInstance(ctx, tx, op, p); err != nil {
				return err
			}
			_, _, err := a.impersonate(ctx, tx, op, p, membership)
			return err
		}
		return a.endActing(ctx, tx, p)
	})
}
