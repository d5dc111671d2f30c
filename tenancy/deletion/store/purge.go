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

// DueOrganizations returns the ids of organizations whose deletion was requested before the given
// time. It returns at most limit ids, in ascending order, starting after the given id.
func DueOrganizations(
	ctx context.Context, tx *db.GateTx, before time.Time, after tenancy.OrgID, limit int,
) (ids []tenancy.OrgID, err error) {
	return db.Column[tenancy.OrgID](ctx, tx, purgeOrganizations, before, after.UUID(), limit)
}

// PurgeOrganization deletes an organization and all rows that belong to it, provided that its
// deletion was requested before the given time. It returns pgx.ErrNoRows if the deletion was
// undone.
func PurgeOrganization(ctx context.Context, tx *db.GateTx, org tenancy.OrgID, before time.Time) error {
	return db.Change(ctx, tx, purgeOrganization, org, before)
}

// DuePeople returns the ids of people whose deletion was requested before the given time. It
// returns at most limit ids, in ascending order, starting after the given id.
func DuePeople(
	ctx context.Context, tx *db.GateTx, before time.Time, after tenancy.PersonID, limit int,
) (ids []tenancy.PersonID, err error) {
	return db.Column[tenancy.PersonID](ctx, tx, purgePeople, before, after.UUID(), limit)
}

// PurgePerson deletes a person and the person's sessions, memberships and credentials, provided
// that the deletion was requested before the given time. It returns pgx.ErrNoRows if the deletion
// was undone.
func PurgePerson(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, before time.Time) error {
	return db.Change(ctx, tx, purgePerson, person, before)
}

// FindOwned returns the ids of an organization's rows of the given kind. It returns at most limit
// ids, in ascending order, starting after the given id. If the organization's deletion was not
// requested before the given time, FindOwned returns no ids.
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

// Purge deletes the given rows of an organization in one statement and returns the number of
// deleted rows. If the organization's deletion was not requested before the given time, Purge
// deletes nothing. If Postgres rejects one row, Purge deletes no rows and returns the error.
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

// Purgeable is a kind of row that an organization can have many of. FindOwned finds these rows, and
// Purge deletes them. PurgeOrganization then deletes the organization's remaining rows, which are
// few.
type Purgeable string

// The kinds of purgeable rows. PurgeMembers excludes the owner, because an organization must have
// an owner until it is deleted.
const (
	PurgeAudit       Purgeable = "audit-log"
	PurgeInvitations Purgeable = "invitations"
	PurgeKeys        Purgeable = "api-keys"
	PurgeMembers     Purgeable = "members"
)

// OwnedID is the id of a Purgeable row. For a member, it is the person's id.
type OwnedID = uuid.UUID

// isDue is the SQL condition that the deletion of organization $1 was requested before $2. The
// row-level security policies for pg.Retention also check that the deletion was requested.
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
