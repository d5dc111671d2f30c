package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
)

// DueOrganizations returns, in id order, at most limit organizations with an id greater than after
// whose deletion was requested before a time.
func DueOrganizations(
	ctx context.Context, tx *db.GateTx, before time.Time, after tenancy.OrgID, limit int,
) (ids []tenancy.OrgID, err error) {
	return db.Column[tenancy.OrgID](ctx, tx, purgeOrganizations, before, after.UUID(), limit)
}

// PurgeOrganization deletes an organization whose deletion was requested before a time, with all
// rows that belong to it. It returns pgx.ErrNoRows if the deletion was undone.
func PurgeOrganization(ctx context.Context, tx *db.GateTx, org tenancy.OrgID, before time.Time) error {
	return db.Change(ctx, tx, purgeOrganization, org, before)
}

// DuePeople returns, in id order, at most limit people with an id greater than after whose deletion
// was requested before a time.
func DuePeople(
	ctx context.Context, tx *db.GateTx, before time.Time, after tenancy.PersonID, limit int,
) (ids []tenancy.PersonID, err error) {
	return db.Column[tenancy.PersonID](ctx, tx, purgePeople, before, after.UUID(), limit)
}

// PurgePerson deletes a person whose deletion was requested before a time, with sessions,
// memberships and credentials. It returns pgx.ErrNoRows if the deletion was undone.
func PurgePerson(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, before time.Time) error {
	return db.Change(ctx, tx, purgePerson, person, before)
}

// FindOwned returns, in order, the ids of at most limit rows of a kind with an id greater than
// after, if the deletion of the organization was requested before a time. It returns the error of
// Postgres.
func FindOwned(
	ctx context.Context, d *db.DB, org tenancy.OrgID, kind Purgeable, before time.Time, after OwnedID, limit int,
) (ids []OwnedID, err error) {
	err = d.WriteRole(ctx, pg.Retention, func(b *pgx.Batch) {
		b.Queue(findOwned[kind], org, before, after, limit).Query(func(rows pgx.Rows) (err error) {
			ids, err = pgx.CollectRows(rows, pgx.RowTo[OwnedID])
			return err
		})
	})
	return ids, err
}

// Purge deletes, in one statement, the rows of a kind with these ids if the deletion of the
// organization was requested before a time, and returns their number. If Postgres rejects one row,
// Purge deletes none and returns the error.
func Purge(
	ctx context.Context, d *db.DB, org tenancy.OrgID, kind Purgeable, before time.Time, ids []OwnedID,
) (n int, err error) {
	err = d.WriteRole(ctx, pg.Retention, func(b *pgx.Batch) {
		b.Queue(purgeOwned[kind], org, before, ids).Exec(db.Written(&n))
	})
	return n, err
}

const purgeOrganizations = `-- tenancy.PurgeOrganizations
select id from organization where deleted_at < $1 and id > $2 order by id limit $3`

const purgeOrganization = `-- tenancy.PurgeOrganization
delete from organization where id = $1 and deleted_at < $2`

const purgePeople = `-- tenancy.PurgePeople
select id from person where deleted_at < $1 and id > $2 order by id limit $3`

const purgePerson = `-- tenancy.PurgePerson
delete from person where id = $1 and deleted_at < $2`

// Purgeable is a kind of row that an organization may have many of. FindOwned finds such rows and
// Purge deletes them, before PurgeOrganization deletes the few that remain.
type Purgeable string

// The kinds of rows. PurgeMembers excludes the owner, because an organization has one until it is
// gone.
const (
	PurgeAudit       Purgeable = "audit-log"
	PurgeInvitations Purgeable = "invitations"
	PurgeKeys        Purgeable = "api-keys"
	PurgeMembers     Purgeable = "members"
)

// OwnedID is the id of a row of a kind. For a member, it is the id of the person.
type OwnedID = uuid.UUID

// isDue is the condition that the deletion of the organization $1 was requested before $2. The
// role's policies themselves check that it was requested.
const isDue = `exists (select from organization o where o.id = $1 and o.deleted_at < $2)`

var findOwned = map[Purgeable]string{
	PurgeAudit: `-- tenancy.FindOwnedAudit
select id from audit where org_id = $1 and ` + isDue + ` and id > $3 order by id limit $4`,
	PurgeInvitations: `-- tenancy.FindOwnedInvitations
select id from invitation where org_id = $1 and ` + isDue + ` and id > $3 order by id limit $4`,
	PurgeKeys: `-- tenancy.FindOwnedKeys
select id from api_key where org_id = $1 and ` + isDue + ` and id > $3 order by id limit $4`,
	PurgeMembers: `-- tenancy.FindOwnedMembers
select person_id from member
where org_id = $1 and ` + isDue + ` and role <> 'SUPERADMIN' and person_id > $3 order by person_id limit $4`,
}

var purgeOwned = map[Purgeable]string{
	PurgeAudit: `-- tenancy.PurgeAudit
delete from audit where org_id = $1 and ` + isDue + ` and id = any ($3)`,
	PurgeInvitations: `-- tenancy.PurgeInvitations
delete from invitation where org_id = $1 and ` + isDue + ` and id = any ($3)`,
	PurgeKeys: `-- tenancy.PurgeKeys
delete from api_key where org_id = $1 and ` + isDue + ` and id = any ($3)`,
	PurgeMembers: `-- tenancy.PurgeMembers
delete from member where org_id = $1 and ` + isDue + ` and role <> 'SUPERADMIN' and person_id = any ($3)`,
}
