package session

import (
	"context"
	"errors"
	"slices"

	"crier/platform/fault"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/notice"
	sessionstore "crier/tenancy/session/store"
)

// actAs returns the principal for a membership, with the instance administrator as Impersonator.
// The first time the session acts as the member, actAs records the impersonation, as Impersonate
// does. If the membership can no longer be used, actAs returns fault.Forbidden. It does not fall
// back to the administrator's own membership, because the administrator would not expect that.
func (s *Sessions) actAs(
	ctx context.Context, p tenancy.Principal, membership string,
) (as tenancy.Principal, err error) {
	const op = "tenancy.actAs"
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		person, o, err := s.impersonate(ctx, tx, op, p, membership)
		as = tenancy.Principal{
			Org: o.ID, Person: person.ID, Role: o.Role, Via: tenancy.ViaSession, Session: p.Session, Name: person.Email,
			Impersonator: p.Person, ImpersonatorName: p.Name, From: p.From,
		}
		if o.SuspendedAt != nil {
			as.Access = tenancy.AccessSuspended
		}
		return err
	})
	return as, err
}

// impersonate returns the person and the organization of an enabled membership, or Forbidden if
// there is none. The first time p's session acts as the member, impersonate emails the person and
// records the impersonation in the organization's audit log and in the instance events.
func (s *Sessions) impersonate(
	ctx context.Context, tx *db.GateTx, op string, p tenancy.Principal, membership string,
) (person tenancy.Person, o tenancy.OrganizationOf, err error) {
	person, o, err = findMembership(ctx, tx, op, membership)
	if err != nil {
		return person, o, err
	}
	began, err := sessionstore.BeginImpersonation(ctx, tx, p.Session, o.ID, person.ID, s.clock.Now())
	if err != nil || !began {
		return person, o, err
	}
	if err := s.auditActing(ctx, tx, p, tenancy.ActionImpersonated, o.ID, person); err != nil {
		return person, o, err
	}
	return person, o, s.notices.Notify(ctx, tx, notice.Impersonated, person.Email, notice.Notice{By: p.Name})
}

// auditActing records that the instance administrator p.Doer() started or stopped impersonating a
// person.
func (s *Sessions) auditActing(ctx context.Context, tx *db.GateTx, p tenancy.Principal, action tenancy.Action,
	org tenancy.OrgID, person tenancy.Person) error {
	now, admin := s.clock.Now(), p.Doer()
	event := tenancy.Principal{
		Person: person.ID, Name: person.Email, Via: tenancy.ViaInstance, ImpersonatorName: admin, From: p.From,
	}.Event(action, person.Email)
	if err := db.AuditOrg(ctx, tx, org, event, now); err != nil {
		return err
	}
	return db.AddInstanceEvent(ctx, tx, tenancy.InstanceEvent{
		At: now, Actor: admin, Action: action, Subject: person.Email,
	})
}

// endActing ends the impersonations in an administrator's session and records their end. p.Doer()
// is the administrator.
func (s *Sessions) endActing(ctx context.Context, tx *db.GateTx, p tenancy.Principal) error {
	ended, err := sessionstore.EndImpersonations(ctx, tx, p.Session)
	for _, e := range ended {
		person := tenancy.Person{ID: e.Person, Email: e.Email}
		err = errors.Join(err, s.auditActing(ctx, tx, p, tenancy.ActionImpersonationEnded, e.Org, person))
	}
	return err
}

// EndActingOf ends the impersonations in all of an administrator's sessions and records their end.
func (s *Sessions) EndActingOf(ctx context.Context, tx *db.GateTx, admin tenancy.Person) error {
	sessions, err := sessionstore.ActingSessions(ctx, tx, admin.ID)
	for _, session := range sessions {
		err = errors.Join(err, s.endActing(ctx, tx, tenancy.Principal{Session: session, Name: admin.Email}))
	}
	return err
}

// Impersonable returns at most ten memberships for which text matches the person's name or email
// address, or the organization's name or id. Only an instance administrator may call it.
func (s *Sessions) Impersonable(ctx context.Context, p tenancy.Principal, text string) ([]tenancy.Impersonable, error) {
	const op = "tenancy.Impersonable"
	var in tenancy.Inputs
	text = in.Text("name", text, 254)
	if err := in.Err(op); err != nil {
		return nil, err
	}
	var out []tenancy.Impersonable
	err := s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		if err := checkInstance(ctx, tx, op, p); err != nil {
			return err
		}
		found, err := sessionstore.Search(ctx, tx, text, foundMemberships)
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

// Impersonate starts impersonating a member in the principal's session. It records the
// impersonation in the organization's audit log and in the instance events, and emails the person.
// If membership is "", Impersonate ends the session's impersonations and records their end, as
// Logout does. If the session ends in any other way, the end of its impersonations is not recorded.
func (s *Sessions) Impersonate(ctx context.Context, p tenancy.Principal, membership string) error {
	const op = "tenancy.Impersonate"
	return s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		if membership != "" {
			if err := s.db.ConfirmSession(ctx, tx, p); err != nil {
				return err
			}
			if err := checkInstance(ctx, tx, op, p); err != nil {
				return err
			}
			_, _, err := s.impersonate(ctx, tx, op, p, membership)
			return err
		}
		return s.endActing(ctx, tx, p)
	})
}

// foundMemberships is the maximum number of memberships that a search returns.
const foundMemberships = 10

// findMembership returns the person and the organization of an enabled membership, or Forbidden if
// there is none.
func findMembership(ctx context.Context, tx *db.GateTx, op, membership string) (
	person tenancy.Person, o tenancy.OrganizationOf, err error) {
	gone := fault.New(fault.Forbidden, op, "There is no such member to act as; end the impersonation.")
	org, id, ok := tenancy.ParseMembership(membership)
	if !ok {
		return person, o, gone
	}
	all, err := db.Memberships(ctx, tx, id)
	if err != nil {
		return person, o, err
	}
	i := slices.IndexFunc(all, func(o tenancy.OrganizationOf) bool {
		return o.ID == org && !o.Disabled && o.DeletedAt == nil
	})
	if i < 0 {
		return person, o, gone
	}
	person, err = db.ReadPerson(ctx, tx, id)
	if err == nil && person.DeletedAt != nil {
		return person, o, gone
	}
	return person, all[i], err
}

// checkInstance returns Forbidden unless the principal's person is currently an instance
// administrator.
func checkInstance(ctx context.Context, tx *db.GateTx, op string, p tenancy.Principal) error {
	person, err := db.ReadPerson(ctx, tx, p.Person)
	if err == nil && (!person.Instance || !p.Impersonator.IsZero()) {
		return fault.New(fault.Forbidden, op, "Only an administrator of the instance may do this.")
	}
	return err
}
