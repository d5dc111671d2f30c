// Package store has the statements about administrators of the instance, whether organizations may
// publish, and what has expired. Only tenancy/instance uses it.
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

// Marks are whether an organization may publish.
type Marks struct {
	// Stopped means that it is suspended or to be deleted.
	Stopped bool `db:"stopped"`
	// CatchUp means that posts which fell due meanwhile are published late when it may publish
	// again.
	CatchUp bool `db:"catch_up"`
}

// ReadMarks returns the marks of an organization, or pgx.ErrNoRows.
func ReadMarks(ctx context.Context, tx *db.GateTx, org tenancy.OrgID) (Marks, error) {
	return db.One[Marks](ctx, tx, organizationMarks, org)
}

const markedOrgs = `-- tenancy.MarkedOrgs
select id, suspended_at is not null or deleted_at is not null stopped from organization
where id > $1 order by id limit $2`

// MarkedOrg is an organization and whether it may publish.
type MarkedOrg struct {
	Org tenancy.OrgID `db:"id"`
	// Stopped is that of Marks.
	Stopped bool `db:"stopped"`
}

// MarkedOrgs returns at most limit organizations after an id, by id.
func MarkedOrgs(ctx context.Context, tx *db.GateTx, after tenancy.OrgID, limit int) ([]MarkedOrg, error) {
	return db.List[MarkedOrg](ctx, tx, markedOrgs, after.UUID(), limit)
}

const organizationSuspended = `-- tenancy.OrganizationSuspended
update organization set suspended_at = $2, catch_up = deleted_at is null where id = $1
returning pg_notify('` + db.RevocationChannel + `', id::text)`

// SetSuspended stores when an organization was suspended, nil when that is over, and adds the task
// that stops or resumes its publishing. All processes are notified that its keys end, or work
// again.
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

// ListOrganizations returns at most limit organizations after an id, by id. Their description and
// time zone are empty.
func ListOrganizations(ctx context.Context, tx *db.GateTx, after tenancy.OrgID, limit int) (
	[]tenancy.Organization, error) {
	return db.List[tenancy.Organization](ctx, tx, organizationListAll, after.UUID(), limit)
}
