package db

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
)

const authorityLock = `-- tenancy.AuthorityLock
select pg_advisory_xact_lock(hashtextextended('crier.authority ' || $1::uuid, 0))`

const authorityShare = `-- tenancy.AuthorityShare
select pg_advisory_xact_lock_shared(hashtextextended('crier.authority ' || $1::uuid, 0))`

// LockAuthority locks the permissions in an organization until the end of the transaction. If alone
// is set, the lock is exclusive; otherwise, it is shared. A transaction that takes a permission
// away must set alone. A transaction that locks the principal's session must do so before it calls
// LockAuthority.
//
// Postgres grants the lock in request order, so a stream of commands cannot keep a removal waiting.
// With row locks, it could.
func LockAuthority(ctx context.Context, q pg.Querier, org tenancy.OrgID, alone bool) error {
	sql := authorityShare
	if alone {
		sql = authorityLock
	}
	rows, err := q.Query(ctx, sql, org)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

const sessionConfirm = `-- tenancy.SessionConfirm
select s.person_id, p.instance_admin from session s join person p on p.id = s.person_id
where s.id = $1 and s.expires_at > $2 for no key update of s`

// ConfirmedSession is a session that has not ended.
type ConfirmedSession struct {
	Person tenancy.PersonID `db:"person_id"`
	// Instance means that the person is an administrator of the instance.
	Instance bool `db:"instance_admin"`
}

// ConfirmSession returns a session, or pgx.ErrNoRows if the session has ended. It locks the
// session, so that the session cannot be ended before the transaction is complete. The transaction
// must run as pg.Gate.
func ConfirmSession(ctx context.Context, q pg.Querier, session tenancy.SessionID, now time.Time) (
	ConfirmedSession, error) {
	return One[ConfirmedSession](ctx, q, sessionConfirm, session, now)
}

const impersonationConfirm = `-- tenancy.ImpersonationConfirm
select exists (select from impersonation where session_id = $1 and org_id = $2 and person_id = $3)`

// IsImpersonated reports whether a session is impersonating a member. The transaction must run as
// pg.Gate.
func IsImpersonated(
	ctx context.Context, q pg.Querier, session tenancy.SessionID, org tenancy.OrgID, person tenancy.PersonID,
) (is bool, err error) {
	err = q.QueryRow(ctx, impersonationConfirm, session, org, person).Scan(&is)
	return is, err
}

// memberColumns lists the columns of ConfirmedMember. It selects them from member m and its
// organization o.
const memberColumns = `m.role, m.disabled, o.suspended_at is not null suspended, o.deleted_at is not null deleted,
  o.mfa_required and not exists (select from mfa f where f.person_id = m.person_id and f.confirmed_at is not null)
    unenrolled`

const memberConfirm = `-- tenancy.MemberConfirm
select ` + memberColumns + `
from member m join organization o on o.id = m.org_id
where m.org_id = $1 and m.person_id = $2`

// ConfirmedMember describes a membership and any restrictions on access to the organization.
type ConfirmedMember struct {
	Role     tenancy.Role `db:"role"`
	Disabled bool         `db:"disabled"`
	// Suspended means that the operator has suspended the organization. Deleted means that the
	// owner has requested its deletion.
	Suspended bool `db:"suspended"`
	Deleted   bool `db:"deleted"`
	// Unenrolled means that the organization requires a second factor and the person has none.
	Unenrolled bool `db:"unenrolled"`
}

// ConfirmMember returns a person's membership in an organization, or pgx.ErrNoRows if there is
// none. The transaction must run as pg.Gate and must have called LockAuthority.
func ConfirmMember(ctx context.Context, q pg.Querier, org tenancy.OrgID, person tenancy.PersonID) (
	ConfirmedMember, error) {
	return One[ConfirmedMember](ctx, q, memberConfirm, org, person)
}

const guestConfirm = `-- tenancy.GuestConfirm
select exists (
  select from organization o where o.id = $1 and o.suspended_at is null and o.deleted_at is null
    and ($2::uuid is null or exists (
      select from member m join person u on u.id = m.person_id
      where m.org_id = o.id and m.person_id = $2 and not m.disabled and u.deleted_at is null)))`

// ConfirmGuest reports whether a guest's link still works. The organization must be accessible. If
// a member passed the link on, sharer is that member, who must still belong to the organization.
// Otherwise, sharer is zero. The transaction must run as pg.Gate and must have called
// LockAuthority.
func ConfirmGuest(ctx context.Context, q pg.Querier, org tenancy.OrgID, sharer tenancy.PersonID) (
	works bool, err error) {
	err = q.QueryRow(ctx, guestConfirm, org, sharer).Scan(&works)
	return works, err
}

// KeyWorks is the SQL condition that key k works at time $1: it has neither expired nor reached the
// end of its overlap.
const KeyWorks = `coalesce(least(k.expires_at, k.overlap_until) > $1, true)`

const keyConfirm = `-- tenancy.KeyConfirm
select o.suspended_at is not null suspended, o.deleted_at is not null deleted
from api_key k join organization o on o.id = k.org_id
where k.org_id = $2 and k.id = $3 and ` + KeyWorks

// ConfirmedKey reports whether the organization of a working API key is suspended or marked for
// deletion.
type ConfirmedKey struct {
	Suspended bool `db:"suspended"`
	Deleted   bool `db:"deleted"`
}

// ConfirmKey returns the state of a key's organization, or pgx.ErrNoRows if the key no longer
// works. The transaction must run as pg.Gate and must have called LockAuthority.
func ConfirmKey(ctx context.Context, q pg.Querier, org tenancy.OrgID, key tenancy.KeyID, now time.Time) (
	ConfirmedKey, error) {
	return One[ConfirmedKey](ctx, q, keyConfirm, now, org, key)
}

const agentConfirm = `-- tenancy.AgentConfirm
select ` + memberColumns + `,
  exists (select from oauth_grant g join person u on u.id = g.person_id where g.org_id = m.org_id and g.id = $3
    and g.person_id = m.person_id and coalesce(g.ends_at > $4, true) and u.deleted_at is null) granted
from member m join organization o on o.id = m.org_id
where m.org_id = $1 and m.person_id = $2`

// ConfirmedAgent describes the membership of an agent's person.
type ConfirmedAgent struct {
	ConfirmedMember
	// Granted means that the agent's grant has neither been revoked nor ended.
	Granted bool `db:"granted"`
}

// ConfirmAgent is like ConfirmMember, but also confirms an agent's grant.
func ConfirmAgent(
	ctx context.Context, q pg.Querier, org tenancy.OrgID, person tenancy.PersonID, grant tenancy.GrantID, now time.Time,
) (ConfirmedAgent, error) {
	return One[ConfirmedAgent](ctx, q, agentConfirm, org, person, grant, now)
}

// Confirm returns nil if a principal still has the permissions that it had when its request was
// admitted. The session or key must still be valid, the person must be a member with at least the
// same role, and the organization must be accessible. An agent's grant must still be in effect.
//
// Every transaction that acts for a principal begins with Confirm. What Confirm has checked remains
// true until the transaction ends. A removal, demotion, logout, suspension or deletion either has
// already taken effect, or waits and then sees what the transaction wrote. Confirm must run as
// pg.Gate.
//
// A person may have no session, for example because an operation is completed through a link. In
// that case, Confirm checks only the membership. For a guest, Confirm checks the organization and,
// if a member passed the link on, that member's membership. The caller must look up the link
// itself. For the operator, Confirm checks nothing.
//
// Confirm returns fault.Unauthenticated if the session or the grant has ended or the key no longer
// works. It returns fault.Forbidden if the person has lost access or the organization is not
// accessible. It returns fault.NotFound if a guest's link no longer works. It returns Postgres
// errors unchanged.
func (d *DB) Confirm(ctx context.Context, q pg.Querier, p tenancy.Principal) error {
	return d.confirmPrincipal(ctx, q, p, false)
}

// confirmPrincipal implements Confirm. If the transaction takes a permission away, alone must be
// set. confirmPrincipal then waits until all other confirmed commands in the organization have
// ended.
func (d *DB) confirmPrincipal(ctx context.Context, q pg.Querier, p tenancy.Principal, alone bool) error {
	if p.Via == tenancy.ViaInstance {
		return nil
	}
	if err := d.ConfirmSession(ctx, q, p); err != nil {
		return err
	}
	if err := LockAuthority(ctx, q, p.Org, alone); err != nil {
		return err
	}
	switch p.Via {
	case tenancy.ViaKey:
		return d.confirmKey(ctx, q, p)
	case tenancy.ViaAgent:
		a, err := ConfirmAgent(ctx, q, p.Org, p.Person, p.Agent.Grant, d.clock.Now())
		if err == nil && !a.Granted {
			return fault.New(fault.Unauthenticated, "tenancy.Confirm", "This application's permission has ended.")
		}
		return confirmMember(p, a.ConfirmedMember, err)
	case tenancy.ViaSession:
		m, err := ConfirmMember(ctx, q, p.Org, p.Person)
		return confirmMember(p, m, err)
	case tenancy.ViaGuest:
		return confirmGuest(ctx, q, p)
	}
	return fault.New(fault.Internal, "tenancy.Confirm", "")
}

func (d *DB) confirmKey(ctx context.Context, q pg.Querier, p tenancy.Principal) error {
	const op = "tenancy.Confirm"
	k, err := ConfirmKey(ctx, q, p.Org, p.Key, d.clock.Now())
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

// ConfirmSession locks the principal's session until the end of the transaction. It returns
// Unauthenticated if the session has ended, and Forbidden if the session may no longer impersonate
// the person. If the principal has no session, ConfirmSession returns nil.
func (d *DB) ConfirmSession(ctx context.Context, q pg.Querier, p tenancy.Principal) error {
	const op = "tenancy.Confirm"
	if p.Session.IsZero() {
		return nil
	}
	s, err := ConfirmSession(ctx, q, p.Session, d.clock.Now())
	if pg.IsNoRows(err) {
		return fault.New(fault.Unauthenticated, op, "Sign in first.")
	}
	if err != nil || p.Impersonator.IsZero() {
		return err
	}
	acts, err := IsImpersonated(ctx, q, p.Session, p.Org, p.Person)
	if err == nil && (!acts || !s.Instance || s.Person != p.Impersonator) {
		return fault.New(fault.Forbidden, op, "You are no longer acting as this person.")
	}
	return err
}

// InOrgAs is like InOrg, but runs a principal's command: the transaction begins with Confirm.
func (d *DB) InOrgAs(ctx context.Context, op string, p tenancy.Principal,
	fn func(tx *OrgTx) error) error {
	return d.inOrgConfirmed(ctx, op, p, false, fn)
}

// InOrgAlone is like InOrgAs, but for a command that takes a permission away from a member, a key,
// an invitation or the organization. fn sees everything that earlier commands in the organization
// have written. No other command can write until the transaction ends.
func (d *DB) InOrgAlone(ctx context.Context, op string, p tenancy.Principal,
	fn func(tx *OrgTx) error) error {
	return d.inOrgConfirmed(ctx, op, p, true, fn)
}

func (d *DB) inOrgConfirmed(ctx context.Context, op string, p tenancy.Principal, alone bool,
	fn func(tx *OrgTx) error) error {
	return d.InOrg(ctx, op, p.Org, func(tx *OrgTx) error {
		err := tx.AsGate(ctx, func(q pg.Querier) error { return d.confirmPrincipal(ctx, q, p, alone) })
		if err != nil {
			return err
		}
		return fn(tx)
	})
}

// InPerson locks the principal's person and then runs fn as pg.Gate in the same transaction. It
// returns Unauthenticated if the session has ended since the request was admitted, or if the
// account is marked for deletion. It returns Forbidden if the request was made by an instance
// administrator who is no longer impersonating the person.
func (d *DB) InPerson(ctx context.Context, op string, p tenancy.Principal,
	fn func(tx *GateTx, person tenancy.Person) error) error {
	return d.InGate(ctx, op, func(tx *GateTx) error {
		person, err := LockPerson(ctx, tx, p.Person)
		if pg.IsNoRows(err) || err == nil && person.DeletedAt != nil {
			return fault.New(fault.Unauthenticated, op, "Sign in first.")
		}
		if err != nil {
			return err
		}
		if err := d.ConfirmSession(ctx, tx, p); err != nil {
			return err
		}
		return fn(tx, person)
	})
}

// confirmMember returns an error that explains why a principal may no longer act. It returns nil if
// the principal may still act. m and err are the results of ConfirmMember.
func confirmMember(p tenancy.Principal, m ConfirmedMember, err error) error {
	const op = "tenancy.Confirm"
	switch {
	case pg.IsNoRows(err) || err == nil && m.Disabled:
		return fault.New(fault.Forbidden, op, "You are no longer a member of this organization.")
	case err != nil:
		return err
	case m.Deleted:
		return fault.New(fault.Forbidden, op, "The organization is scheduled for deletion.")
	case m.Suspended:
		return suspended(op)
	case !m.Role.Covers(p.Role):
		return fault.New(fault.Forbidden, op, "Your role in this organization has changed.")
	case m.Unenrolled && p.Access != tenancy.AccessEnroll:
		return Unenrolled(op)
	}
	return nil
}

// confirmGuest returns NotFound if a guest's link no longer works.
func confirmGuest(ctx context.Context, q pg.Querier, p tenancy.Principal) error {
	works, err := ConfirmGuest(ctx, q, p.Org, p.Person)
	if err == nil && !works {
		return fault.New(fault.NotFound, "tenancy.Confirm", "This link is not valid.")
	}
	return err
}

func suspended(op string) error {
	return fault.New(fault.Forbidden, op, "The operator of this service has suspended the organization.")
}

// Unenrolled returns the Forbidden fault for a person who has no second factor although the
// organization requires one.
func Unenrolled(op string) error {
	refusal := fault.New(fault.Forbidden, op, "The organization requires a second factor: enable one first.")
	refusal.Remedy = fault.RemedyEnroll
	return refusal
}

// RejectImpersonator returns Forbidden if the principal is an instance administrator impersonating
// a person.
func RejectImpersonator(op string, p tenancy.Principal) error {
	if p.Impersonator.IsZero() {
		return nil
	}
	return fault.New(fault.Forbidden, op, "This cannot be done while acting as another person.")
}
