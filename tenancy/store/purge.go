package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

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

// expired are the statements that delete rows that are over, at most $2 of each table at once.
var expired = []string{
	`-- tenancy.PruneDevices
delete from device where hash in (select hash from device where expires_at < $1 order by expires_at limit $2)`,
	`-- tenancy.PruneConfirmations
delete from confirmation where id in (select id from confirmation where expires_at < $1 order by expires_at limit $2)`,
	`-- tenancy.PruneSteps
delete from sign_in_step where hash in (select hash from sign_in_step where expires_at < $1 order by expires_at limit $2)`,
	`-- tenancy.PruneStates
delete from sign_in_state where hash in (select hash from sign_in_state where expires_at < $1 order by expires_at limit $2)`,
	`-- tenancy.PruneClaims
delete from identity_claim where hash in (select hash from identity_claim where expires_at < $1 order by expires_at limit $2)`,
	`-- tenancy.PruneRequests
delete from used_request where id in (select id from used_request where expires_at < $1 order by expires_at limit $2)`,
	`-- tenancy.PruneMail
delete from mail where id in (select id from mail where created_at < $1::timestamptz - interval '7 days' order by created_at limit $2)`,
	`-- tenancy.PruneInvitations
delete from invitation where (org_id, id) in
  (select org_id, id from invitation where expires_at < least($1, now()) order by expires_at limit $2)`,
}

// PruneExpired deletes at most limit rows of each kind that are over, such as links, and returns their number. Mails are
// deleted a week after they were queued. A kind that cannot be deleted does not stop the others: the errors are joined.
func (s *Store) PruneExpired(ctx context.Context, now time.Time, limit int) (n int, err error) {
	var faults []error
	for _, sql := range expired {
		deleted := 0
		faults = append(faults, s.InGate(ctx, func(tx *GateTx) (err error) {
			deleted, err = exec(ctx, tx.tx, sql, now, limit)
			return err
		}))
		n += deleted
	}
	return n, errors.Join(faults...)
}
