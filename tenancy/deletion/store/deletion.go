// Package store contains the statements that delete accounts and organizations, restore them, and
// purge them. Only tenancy/deletion uses it.
package store

import (
	"context"
	"time"

	"crier/platform/jobs"
	"crier/tenancy"
	"crier/tenancy/db"
)

const deletedWith = `-- tenancy.OrganizationsDeletedWith
select o.id from member m join organization o on o.id = m.org_id
where m.person_id = $1 and m.role = 'SUPERADMIN' and o.deleted_with = $1 order by o.id`

// DeletedWith returns the organizations that were marked for deletion together with a person's
// account.
func DeletedWith(ctx context.Context, tx *db.GateTx, person tenancy.PersonID) ([]tenancy.OrgID, error) {
	return db.Column[tenancy.OrgID](ctx, tx, deletedWith, person)
}

const soleMember = `-- tenancy.OwnedOrganizations
select m.org_id, (select count(*) from member x where x.org_id = m.org_id)::int members, o.deleted_at is not null deleted
from member m join organization o on o.id = m.org_id
where m.person_id = $1 and m.role = 'SUPERADMIN' order by m.org_id`

// Owned is an organization that a person owns.
type Owned struct {
	Org     tenancy.OrgID `db:"org_id"`
	Members int           `db:"members"`
	// Deleted means that the organization is marked for deletion.
	Deleted bool `db:"deleted"`
}

// OwnedOrganizations returns the organizations that a person owns.
func OwnedOrganizations(ctx context.Context, tx *db.GateTx, person tenancy.PersonID) ([]Owned, error) {
	return db.List[Owned](ctx, tx, soleMember, person)
}

const personDeleted = `-- tenancy.PersonDeleted
update person set deleted_at = $2 where id = $1
returning pg_notify('` + db.RevocationChannel + `', '` + db.PersonRevocation + `' || id)`

// SetPersonDeleted records when an account's deletion was requested. If at is nil, SetPersonDeleted
// undoes the deletion. It announces the change to all processes.
func SetPersonDeleted(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, at *time.Time) error {
	return db.Change(ctx, tx, personDeleted, person, at)
}

const organizationDeleted = `-- tenancy.OrganizationDeleted
update organization set deleted_at = $2, deleted_with = $3, catch_up = false where id = $1
returning pg_notify('` + db.RevocationChannel + `', id::text)`

// SetOrganizationDeleted records when an organization's deletion was requested. If at is nil,
// SetOrganizationDeleted undoes the deletion. If the organization is deleted together with an
// account, the parameter with is that account's person; otherwise, it is zero.
//
// SetOrganizationDeleted also adds the task that stops or resumes the organization's publishing. It
// notifies all processes that the organization's keys have stopped working or work again.
func SetOrganizationDeleted(
	ctx context.Context, tx *db.GateTx, org tenancy.OrgID, at *time.Time, with tenancy.PersonID,
) error {
	if err := db.LockAuthority(ctx, tx, org, true); err != nil {
		return err
	}
	if err := db.Change(ctx, tx, organizationDeleted, org, at, with); err != nil {
		return err
	}
	return tx.AddTask(ctx, jobs.Task{Kind: db.PublishingTask, ID: org.UUID()})
}
