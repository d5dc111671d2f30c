package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy"
)

const authorityLock = `-- tenancy.AuthorityLock
select pg_advisory_xact_lock(hashtextextended('crier.authority ' || $1::uuid, 0))`

const authorityShare = `-- tenancy.AuthorityShare
select pg_advisory_xact_lock_shared(hashtextextended('crier.authority ' || $1::uuid, 0))`

// LockAuthority locks the permissions in an organization until the end of the transaction:
// exclusively for a transaction that takes something away, and otherwise shared with other
// commands. Postgres grants the lock in the order of the requests, so commands cannot keep a
// removal waiting, as they could with row locks. A transaction must lock its session first.
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

// ConfirmSession returns a session that has not ended, or pgx.ErrNoRows. The session cannot end
// before the transaction does. It runs as pg.Gate.
func ConfirmSession(ctx context.Context, q pg.Querier, session tenancy.SessionID, now time.Time) (
	ConfirmedSession, error) {
	return confirm[ConfirmedSession](ctx, q, sessionConfirm, session, now)
}

const impersonationConfirm = `-- tenancy.ImpersonationConfirm
select exists (select from impersonation where session_id = $1 and org_id = $2 and person_id = $3)`

// IsImpersonated reports whether a session is impersonating a member. It runs as pg.Gate.
func IsImpersonated(
	ctx context.Context, q pg.Querier, session tenancy.SessionID, org tenancy.OrgID, person tenancy.PersonID,
) (is bool, err error) {
	err = q.QueryRow(ctx, impersonationConfirm, session, org, person).Scan(&is)
	return is, err
}

const memberConfirm = `-- tenancy.MemberConfirm
select m.role, m.disabled, o.suspended_at is not null suspended, o.deleted_at is not null deleted,
  o.mfa_required and not exists (select from mfa f where f.person_id = m.person_id and f.confirmed_at is not null)
    unenrolled
from member m join organization o on o.id = m.org_id
where m.org_id = $1 and m.person_id = $2`

// ConfirmedMember is a membership with the restrictions on access to its organization.
type ConfirmedMember struct {
	Role     tenancy.Role `db:"role"`
	Disabled bool         `db:"disabled"`
	// Suspended and Deleted mean that the operator has suspended the organization, or that its
	// owner has requested its deletion.
	Suspended bool `db:"suspended"`
	Deleted   bool `db:"deleted"`
	// Unenrolled means that the organization requires a second factor and the person has none.
	Unenrolled bool `db:"unenrolled"`
}

// ConfirmMember returns a membership, or pgx.ErrNoRows. It runs as pg.Gate, after LockAuthority.
func ConfirmMember(ctx context.Context, q pg.Querier, org tenancy.OrgID, person tenancy.PersonID) (
	ConfirmedMember, error) {
	return confirm[ConfirmedMember](ctx, q, memberConfirm, org, person)
}

const guestConfirm = `-- tenancy.GuestConfirm
select exists (
  select from organization o where o.id = $1 and o.suspended_at is null and o.deleted_at is null
    and ($2::uuid is null or exists (
      select from member m join person u on u.id = m.person_id
      where m.org_id = o.id and m.person_id = $2 and not m.disabled and u.deleted_at is null)))`

// ConfirmGuest reports whether an organization is accessible and the person who passed a link on is
// still a member of it. The person is zero for a link that no member passed on. It runs as pg.Gate,
// after LockAuthority.
func ConfirmGuest(ctx context.Context, q pg.Querier, org tenancy.OrgID, sharer tenancy.PersonID) (
	works bool, err error) {
	err = q.QueryRow(ctx, guestConfirm, org, sharer).Scan(&works)
	return works, err
}

const keyConfirm = `-- tenancy.KeyConfirm
select o.suspended_at is not null suspended, o.deleted_at is not null deleted
from api_key k join organization o on o.id = k.org_id
where k.org_id = $2 and k.id = $3 and ` + keyWorks

// ConfirmedKey is the organization of an API key that works.
type ConfirmedKey struct {
	Suspended bool `db:"suspended"`
	Deleted   bool `db:"deleted"`
}

// ConfirmKey returns the organization of a key that has not ended, or pgx.ErrNoRows. It runs as
// pg.Gate, after LockAuthority.
func ConfirmKey(ctx context.Context, q pg.Querier, org tenancy.OrgID, key tenancy.KeyID, now time.Time) (
	ConfirmedKey, error) {
	return confirm[ConfirmedKey](ctx, q, keyConfirm, now, org, key)
}

// confirm returns the row of a query, or pgx.ErrNoRows.
func confirm[T any](ctx context.Context, q pg.Querier, sql string, args ...any) (T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		var none T
		return none, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
}

// AsGate runs fn as pg.Gate and continues in the organization when it returns nil.
func (t *OrgTx) AsGate(ctx context.Context, fn func(q pg.Querier) error) error {
	return t.store.db.AsGate(ctx, t.tx, t.org.UUID(), fn)
}

// Querier returns a querier that reads in the transaction.
func (t *GateTx) Querier() pg.Querier { return t.tx }
