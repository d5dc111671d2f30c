package store

import (
	"context"
	"time"

	"crier/tenancy"
	"crier/tenancy/db"
)

const organizationSearch = `-- tenancy.OrganizationSearch
select o.id, o.name, o.suspended_at, o.deleted_at, o.created_at, m.role, p.id person_id, p.email, p.name person_name
from member m join organization o on o.id = m.org_id join person p on p.id = m.person_id
where not m.disabled and o.deleted_at is null and p.deleted_at is null
  and ($1 = '' or position(lower($1) in lower(o.name)) > 0 or position(lower($1) in p.email) > 0
    or position(lower($1) in lower(p.name)) > 0 or o.id::text = lower($1))
order by o.created_at desc, m.created_at limit $2`

// Found is a membership that Search has found.
type Found struct {
	ID          tenancy.OrgID    `db:"id"`
	Name        string           `db:"name"`
	SuspendedAt *time.Time       `db:"suspended_at"`
	DeletedAt   *time.Time       `db:"deleted_at"`
	CreatedAt   time.Time        `db:"created_at"`
	Role        tenancy.Role     `db:"role"`
	Person      tenancy.PersonID `db:"person_id"`
	Email       string           `db:"email"`
	PersonName  string           `db:"person_name"`
}

// Search returns up to limit memberships across all organizations. A membership matches if text is
// part of the person's name or email address, is part of the organization's name, or equals the
// organization's id.
func Search(ctx context.Context, tx *db.GateTx, text string, limit int) ([]Found, error) {
	return db.List[Found](ctx, tx, organizationSearch, text, limit)
}

const impersonationBegin = `-- tenancy.ImpersonationBegin
insert into impersonation (session_id, org_id, person_id, started_at) values ($1, $2, $3, $4) on conflict do nothing`

// BeginImpersonation records that a session acts as a member. It returns false if this was already
// recorded.
func BeginImpersonation(
	ctx context.Context, tx *db.GateTx, session tenancy.SessionID, org tenancy.OrgID, person tenancy.PersonID,
	now time.Time,
) (bool, error) {
	n, err := db.Exec(ctx, tx, impersonationBegin, session, org, person, now)
	return n > 0, err
}

const impersonationEnd = `-- tenancy.ImpersonationEnd
delete from impersonation i using person p where i.session_id = $1 and p.id = i.person_id
returning i.org_id, i.person_id, p.email`

// Impersonation identifies a member whom an administrator impersonates in a session.
type Impersonation struct {
	Org    tenancy.OrgID    `db:"org_id"`
	Person tenancy.PersonID `db:"person_id"`
	Email  string           `db:"email"`
}

// EndImpersonations deletes a session's impersonations and returns them.
func EndImpersonations(ctx context.Context, tx *db.GateTx, session tenancy.SessionID) ([]Impersonation, error) {
	return db.List[Impersonation](ctx, tx, impersonationEnd, session)
}

const actingSessions = `-- tenancy.ActingSessions
select s.id from session s
where s.person_id = $1 and exists (select from impersonation i where i.session_id = s.id) order by s.id for update`

// ActingSessions returns an administrator's sessions that are impersonating somebody, and locks the
// sessions until the end of the transaction.
func ActingSessions(ctx context.Context, tx *db.GateTx, admin tenancy.PersonID) ([]tenancy.SessionID, error) {
	return db.Column[tenancy.SessionID](ctx, tx, actingSessions, admin)
}
