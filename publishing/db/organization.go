package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy"
)

const organizationLock = `-- publishing.OrganizationLock
select from organization where id = $1 for no key update`

// LockOrganization locks the organization until the transaction ends. A transaction that counts an
// organization's resources, or that derives channel flags from pauses, must take this lock first.
// found is false if the organization does not exist.
//
// The lock is a separate statement, so that the next statement sees everything that was committed
// during the wait for the lock.
func LockOrganization(ctx context.Context, tx *Tx) (found bool, err error) {
	tag, err := tx.Exec(ctx, organizationLock, tx.Org)
	return tag.RowsAffected() == 1, err
}

const organizationZone = `-- publishing.OrganizationZone
select timezone from organization where id = $1`

// OrganizationZone returns the name of the organization's time zone, which tenancy.LoadZone
// accepts. It returns pgx.ErrNoRows if the organization does not exist. Example: Europe/Berlin
func OrganizationZone(ctx context.Context, d *DB, org tenancy.OrgID) (zone string, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(organizationZone, org).QueryRow(func(row pgx.Row) error { return row.Scan(&zone) })
	})
	return zone, err
}

// OrganizationToday returns the current day in the organization's time zone, and the time at which
// that day ends. If this server does not know the zone, it uses UTC. Example: 2027-03-01
func OrganizationToday(ctx context.Context, tx *Tx, now time.Time) (day string, ends time.Time, err error) {
	var name string
	if err := tx.QueryRow(ctx, organizationZone, tx.Org).Scan(&name); err != nil {
		return "", ends, err
	}
	zone, err := tenancy.LoadZone(name)
	if err != nil {
		zone = time.UTC
	}
	local := now.In(zone)
	return local.Format(time.DateOnly), time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, zone), nil
}

// Quota returns the limits of an organization's plan. A nil Quota means no limits.
type Quota interface {
	// Limits is called in one of the organization's transactions and reads through q, which is part
	// of that transaction. It returns any Postgres error.
	Limits(ctx context.Context, q pg.Querier, org tenancy.OrgID) (tenancy.Limits, error)
}

// Limits returns what the organization's plan allows.
func Limits(ctx context.Context, tx *Tx, q Quota) (tenancy.Limits, error) {
	if q == nil {
		return tenancy.NoLimits(), nil
	}
	return q.Limits(ctx, tx, tx.Org)
}

const OrgActive = `-- publishing.OrgActive
select o.suspended_at is null and o.deleted_at is null from organization o where o.id = $1`
