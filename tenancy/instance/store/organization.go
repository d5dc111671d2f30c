// Package store has the statements for administrators of the instance, for stopping and resuming
// the publishing of organizations, and for deleting what has expired. Only tenancy/instance uses
// it.
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

// Marks say whether an organization may publish.
type Marks struct {
	// Stopped means that the organization is suspended or to be deleted.
	Stopped bool `db:"stopped"`
	// CatchUp means that posts that fell due while publishing was stopped are published late when
	// it resumes.
	CatchUp bool `db:"catch_up"`
}

// ReadMarks returns the marks of an organization, or pgx.ErrNoRows.
func ReadMarks(ctx context.Context, tx *db.GateTx, org tenancy.OrgID) (Marks, error) {
	return db.One[Marks](ctx, tx, organizationMarks, org)
}

const markedOrgs = `-- tenancy.MarkedOrgs
select id, suspended_at is not null or deleted_at is not null stopped from organization
where id > $1 order by id limit $2`

// MarkedOrg is an organization with the mark that says whether it may publish.
type MarkedOrg struct {
	Org tenancy.OrgID `db:"id"`
	// Stopped is Marks.Stopped.
	Stopped bool `db:"stopped"`
}

// MarkedOrgs returns, in id order, at most limit organizations with an id greater than after.
func MarkedOrgs(ctx context.Context, tx *db.GateTx, after tenancy.OrgID, limit int) ([]MarkedOrg, error) {
	return db.List[MarkedOrg](ctx, tx, markedOrgs, after.UUID(), limit)
}

const organizationSuspended = `-- tenancy.OrganizationSuspended
update organization set suspended_at = $2, catch_up = deleted_at is null where id = $1
returning pg_notify('` + db.RevocationChannel + `', id::text)`

// SetSuspended stores when an organization was suspended. If at is nil, it ends the suspension. It
// adds the task that stops or resumes the organization's publishing, and notifies all processes
// that its keys have ended or work again.
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

// ListOrganizations returns, in id order, at most limit organizations with an id greater than
// after. Their description and time zone are empty.
func ListOrganizations(ctx context.Context, tx *db.GateTx, after tenancy.OrgID, limit int) (
	[]tenancy.Organization, error) {
	return db.List[tenancy.Organization](ctx, tx, organizationListAll, after.UUID(), limit)
}
