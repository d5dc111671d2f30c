package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/pg"
	"crier/tenancy"
)

const purgeOrganizations = `-- tenancy.PurgeOrganizations
select id from organization where deleted_at < $1 and id > $2 order by id limit $3`

// DueOrganizations returns at most limit organizations after an id whose deletion was requested before a time.
func (t *GateTx) DueOrganizations(
	ctx context.Context, before time.Time, after tenancy.OrgID, limit int,
) (ids []tenancy.OrgID, err error) {
	rows, err := t.tx.Query(ctx, purgeOrganizations, before, after.UUID(), limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[tenancy.OrgID])
}

const purgeOrganization = `-- tenancy.PurgeOrganization
delete from organization where id = $1 and deleted_at < $2`

// PurgeOrganization deletes an organization whose deletion was requested before a time, with all rows that belong to it.
// It returns pgx.ErrNoRows when the deletion was undone.
func (t *GateTx) PurgeOrganization(ctx context.Context, org tenancy.OrgID, before time.Time) error {
	return change(ctx, t.tx, purgeOrganization, org, before)
}

const purgePeople = `-- tenancy.PurgePeople
select id from person where deleted_at < $1 and id > $2 order by id limit $3`

// DuePeople returns at most limit people after an id whose deletion was requested before a time.
func (t *GateTx) DuePeople(
	ctx context.Context, before time.Time, after tenancy.PersonID, limit int,
) (ids []tenancy.PersonID, err error) {
	rows, err := t.tx.Query(ctx, purgePeople, before, after.UUID(), limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[tenancy.PersonID])
}

const purgePerson = `-- tenancy.PurgePerson
delete from person where id = $1 and deleted_at < $2`

// PurgePerson deletes a person whose deletion was requested before a time, with sessions, memberships and credentials.
// It returns pgx.ErrNoRows when the deletion was undone.
func (t *GateTx) PurgePerson(ctx context.Context, person tenancy.PersonID, before time.Time) error {
	return change(ctx, t.tx, purgePerson, person, before)
}

// Purgeable is a kind of row that an organization may have many of. FindOwned finds such rows and Purge deletes them,
// before PurgeOrganization deletes the few that remain.
type Purgeable string

// The kinds of rows. The owner is no other member: an organization has one until it is gone.
const (
	PurgeAudit       Purgeable = "audit-log"
	PurgeInvitations Purgeable = "invitations"
	PurgeKeys        Purgeable = "api-keys"
	PurgeMembers     Purgeable = "members"
)

// OwnedID is the id of a row of a kind; of a member it is that of the person.
type OwnedID = uuid.UUID

// isDue is the condition that the deletion of the organization $1 was requested before $2. The policies of the role test
// by themselves that it was requested.
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

// FindOwned returns the ids of at most limit rows of a kind, in their order, starting behind the id after, if the
// deletion of the organization was requested before a time. It returns the error of Postgres.
func (s *Store) FindOwned(
	ctx context.Context, org tenancy.OrgID, kind Purgeable, before time.Time, after OwnedID, limit int,
) (ids []OwnedID, err error) {
	err = s.db.WriteRole(ctx, pg.Retention, func(b *pgx.Batch) {
		b.Queue(findOwned[kind], org, before, after, limit).Query(func(rows pgx.Rows) (err error) {
			ids, err = pgx.CollectRows(rows, pgx.RowTo[OwnedID])
			return err
		})
	})
	return ids, err
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

// Purge deletes, in one statement, the rows of a kind with these ids if the deletion of the organization was requested
// before a time, and returns their number. When Postgres refuses one row, none is deleted and the error is returned.
func (s *Store) Purge(
	ctx context.Context, org tenancy.OrgID, kind Purgeable, before time.Time, ids []OwnedID,
) (n int, err error) {
	err = s.db.WriteRole(ctx, pg.Retention, func(b *pgx.Batch) {
		b.Queue(purgeOwned[kind], org, before, ids).Exec(written(&n))
	})
	return n, err
}

// written stores in n how many rows a statement has written.
func written(n *int) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		*n = int(tag.RowsAffected())
		return nil
	}
}
