// Package store contains the statements that manage instance administrators, stop and resume
// publishing, and delete expired rows. Only tenancy/instance uses it.
package store

import (
	"context"
	"time"

	"crier/platform/jobs"
	"crier/tenancy"
	"crier/tenancy/db"
)

const organizationMarks = `-- tenancy.OrganizationMarks
select suspended_at is not null or deleted_at is not null stopped, catch_up from organization where id = $1`

// Marks says whether an organization may publish.
type Marks struct {
	// Stopped means that the organization is suspended or marked for deletion.
	Stopped bool `db:"stopped"`
	// CatchUp means that posts that became due while publishing was stopped will be published late,
	// after publishing has resumed.
	CatchUp bool `db:"catch_up"`
}

// ReadMarks returns an organization's marks, or pgx.ErrNoRows.
func ReadMarks(ctx context.Context, tx *db.GateTx, org tenancy.OrgID) (Marks, error) {
	return db.One[Marks](ctx, tx, organizationMarks, org)
}

const markedOrgs = `-- tenancy.MarkedOrgs
select id, suspended_at is not null or deleted_at is not null stopped from organization
where id > $1 order by id limit $2`

// MarkedOrg is an organization's id and its Stopped mark.
type MarkedOrg struct {
	Org tenancy.OrgID `db:"id"`
	// Stopped has the same meaning as in Marks.
	Stopped bool `db:"stopped"`
}

// MarkedOrgs returns at most limit organizations, ordered by id, starting after the given id.
func MarkedOrgs(ctx context.Context, tx *db.GateTx, after tenancy.OrgID, limit int) ([]MarkedOrg, error) {
	return db.List[MarkedOrg](ctx, tx, markedOrgs, after.UUID(), limit)
}

const organizationSuspended = `-- tenancy.OrganizationSuspended
update organization set suspended_at = $2, catch_up = deleted_at is null where id = $1
returning pg_notify('` + db.RevocationChannel + `', id::text)`

// SetSuspended records when an organization was suspended. If at is nil, SetSuspended ends the
// suspension. It also adds the task that stops or resumes the organization's publishing. It
// notifies all processes that the organization's keys have stopped working or work again.
func SetSuspended(ctx context.Context, tx *db.GateTx, org tenancy.OrgID, at *time.Time) error {
	if err := db.LockAuthority(ctx, tx, org, true); err != nil {
		return err
	}
	if err := db.Change(ctx, tx, organizationSuspended, org, at); err != nil {
		return err
	}
	return tx.AddTask(ctx, jobs.Task{Kind: db.PublishingTask, ID: org.UUID()})
}

const organizationListAll = `-- tenancy.OrganizationListAll
select o.id, o.name, o.mfa_required, o.suspended_at, o.deleted_at, o.created_at, '' description, '' timezone
from organization o where o.id > $1 order by o.id limit $2`

// ListOrganizations returns at most limit organizations, ordered by id, starting after the given
// id. Description and Timezone are empty in the results.
func ListOrganizations(ctx context.Context, tx *db.GateTx, after tenancy.OrgID, limit int) (
	[]tenancy.Organization, error) {
	return db.List[tenancy.Organization](ctx, tx, organizationListAll, after.UUID(), limit)
}
