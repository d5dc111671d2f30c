package service

import (
	"context"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// Confirm returns nil if a principal still has the permissions that it had when its request was
// permitted: the session or the key has not ended, the person is a member with at least the same
// role, and the organization is accessible. It is called at the beginning of each transaction that
// acts for the principal, and what it confirms remains true until the transaction ends: a removal,
// a demotion, a log-out, a suspension or a deletion has either taken effect already, or waits and
// then finds what was written. It runs as pg.Gate.
//
// For a principal without a session, such as a person who started something that a link finishes,
// only the membership is confirmed. For a guest, whose link the use case looks up, the organization
// is confirmed, and the membership of the person who passed the link on, if any. The operator is not
// confirmed.
//
// Confirm returns fault.Unauthenticated when the session or the key has ended, fault.Forbidden when
// the person or the organization has lost the permission, and the errors of Postgres.
func (a *Accounts) Confirm(ctx context.Context, q pg.Querier, p tenancy.Principal) error {
	return a.confirmPrincipal(ctx, q, p, false)
}

// confirmPrincipal is Confirm. With alone, the transaction takes a permission away: it waits for
// all confirmed commands in the organization.
func (a *Accounts) confirmPrincipal(ctx context.Context, q pg.Querier, p tenancy.Principal, alone bool) error {
	if p.Via == tenancy.ViaInstance {
		return nil
	}
	if err := a.confirmSession(ctx, q, p); err != nil {
		return err
	}
	if err := tenancystore.LockAuthority(ctx, q, p.Org, alone); err != nil {
		return err
	}
	switch p.Via {
	case tenancy.ViaKey:
		return a.confirmKey(ctx, q, p)
	case tenancy.ViaSession, tenancy.ViaAgent:
		return confirmMember(ctx, q, p)
	case tenancy.ViaGuest:
		return confirmGuest(ctx, q, p)
	}
	return fault.New(fault.Internal, "tenancy.Confirm", "")
}

func (a *Accounts) confirmKey(ctx context.Context, q pg.Querier, p tenancy.Principal) error {
	const op = "tenancy.Confirm"
	k, err := tenancystore.ConfirmKey(ctx, q, p.Org, p.Key, a.clock.Now())
	switch {
	case pg.IsNoRows(err) || err == nil && k.Deleted:
		return fault.New(fault.Unauthenticated, op, "Invalid API key.")
	case err != nil:
		return err
	case k.Suspended:
		return suspended(op)
	}
	return nil
}

// confirmSession returns Unauthenticated when the session of a principal has ended, and Forbidden
// when it may no longer act as the principal's person. It locks the session until the end of the
// transaction. It returns nil for a principal without a session.
func (a *Accounts) confirmSession(ctx context.Context, q pg.Querier, p tenancy.Principal) error {
	const op = "tenancy.Confirm"
	if p.Session.IsZero() {
		return nil
	}
	s, err := tenancystore.ConfirmSession(ctx, q, p.Session, a.clock.Now())
	if pg.IsNoRows(err) {
		return fault.New(fault.Unauthenticated, op, "Sign in first.")
	}
	if err != nil || p.Behind.IsZero() {
		return err
	}
	acts, err := tenancystore.IsImpersonated(ctx, q, p.Session, p.Org, p.Person)
	if err == nil && (!acts || !s.Instance || s.Person != p.Behind) {
		return fault.New(fault.Forbidden, op, "You no longer act as this person.")
	}
	return err
}

func confirmMember(ctx context.Context, q pg.Querier, p tenancy.Principal) error {
	const op = "tenancy.Confirm"
	m, err := tenancystore.ConfirmMember(ctx, q, p.Org, p.Person)
	switch {
	case pg.IsNoRows(err) || err == nil && m.Disabled:
		return fault.New(fault.Forbidden, op, "You are no longer a member of this organization.")
	case err != nil:
		return err
	case m.Deleted:
		return fault.New(fault.Forbidden, op, "The organization will be deleted.")
	case m.Suspended:
		return suspended(op)
	case !m.Role.Covers(p.Role):
		return fault.New(fault.Forbidden, op, "Your role in this organization has changed.")
	case m.Unenrolled && p.Access != tenancy.AccessEnroll:
		return unenrolled(op)
	}
	return nil
}

// confirmGuest returns NotFound if the link of a guest no longer works.
func confirmGuest(ctx context.Context, q pg.Querier, p tenancy.Principal) error {
	works, err := tenancystore.ConfirmGuest(ctx, q, p.Org, p.Person)
	if err == nil && !works {
		return fault.New(fault.NotFound, "tenancy.Confirm", "This link is not valid.")
	}
	return err
}

func suspended(op string) error {
	return fault.New(fault.Forbidden, op, "The operator of this service has suspended the organization.")
}

func unenrolled(op string) error {
	refusal := fault.New(fault.Forbidden, op, "The organization requires a second factor: enable one first.")
	refusal.Remedy = fault.RemedyEnroll
	return refusal
}

// inOrgAs is inOrg for a command of a principal: the transaction begins with Confirm.
func (a *Accounts) inOrgAs(ctx context.Context, op string, p tenancy.Principal,
	fn func(tx *tenancystore.OrgTx) error) error {
	return a.inOrgConfirmed(ctx, op, p, false, fn)
}

// inOrgAlone is inOrgAs for a command that takes a permission away from a member, a key, an
// invitation or the organization. When fn runs, it sees everything that other commands in the
// organization have written, and they write nothing more before it ends.
func (a *Accounts) inOrgAlone(ctx context.Context, op string, p tenancy.Principal,
	fn func(tx *tenancystore.OrgTx) error) error {
	return a.inOrgConfirmed(ctx, op, p, true, fn)
}

func (a *Accounts) inOrgConfirmed(ctx context.Context, op string, p tenancy.Principal, alone bool,
	fn func(tx *tenancystore.OrgTx) error) error {
	return a.inOrg(ctx, op, p.Org, func(tx *tenancystore.OrgTx) error {
		err := tx.AsGate(ctx, func(q pg.Querier) error { return a.confirmPrincipal(ctx, q, p, alone) })
		if err != nil {
			return err
		}
		return fn(tx)
	})
}

// inPerson runs fn in a transaction of the gate role that has locked the principal's person. It
// returns Unauthenticated if the session has ended since the request was permitted or the account
// is marked for deletion, and Forbidden if an instance administrator is no longer impersonating the
// person.
func (a *Accounts) inPerson(ctx context.Context, op string, p tenancy.Principal,
	fn func(tx *tenancystore.GateTx, person tenancy.Person) error) error {
	return a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		person, err := tx.LockPerson(ctx, p.Person)
		if pg.IsNoRows(err) || err == nil && person.DeletedAt != nil {
			return fault.New(fault.Unauthenticated, op, "Sign in first.")
		}
		if err != nil {
			return err
		}
		if err := a.confirmSession(ctx, tx.Querier(), p); err != nil {
			return err
		}
		return fn(tx, person)
	})
}
