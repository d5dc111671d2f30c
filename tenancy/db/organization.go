package db

import (
	"context"

	"crier/tenancy"
)

const organizationGet = `-- tenancy.OrganizationGet
select id, name, description, timezone, mfa_required, suspended_at, deleted_at, created_at from organization
where id = $1`

// ReadOrganization returns the transaction's organization, or pgx.ErrNoRows.
func ReadOrganization(ctx context.Context, tx *OrgTx) (tenancy.Organization, error) {
	return One[tenancy.Organization](ctx, tx, organizationGet, tx.Org)
}

// LockOrganization is like ReadOrganization, but also locks the row until the end of the
// transaction. Rows that reference the organization can still be inserted.
func LockOrganization(ctx context.Context, tx *OrgTx) (tenancy.Organization, error) {
	return One[tenancy.Organization](ctx, tx, organizationGet+" for no key update", tx.Org)
}

const organizationUpdate = `-- tenancy.OrganizationUpdate
update organization set name = $2, description = $3, mfa_required = $4 where id = $1
returning pg_notify('` + RevocationChannel + `', id::text)`

// UpdateOrganization stores the settings of the transaction's organization, except for the time
// zone. It announces the change to all processes, because the second-factor policy may have
// changed. It returns pgx.ErrNoRows if the organization does not exist.
func UpdateOrganization(ctx context.Context, tx *OrgTx, o tenancy.Organization) error {
	return Change(ctx, tx, organizationUpdate, tx.Org, o.Name, o.Description, o.RequiresMFA)
}

const organizationZone = `-- tenancy.OrganizationZone
update organization set timezone = $2, timezone_chosen = true where id = $1 and not (timezone_chosen and $3)`

// SetTimezone sets the time zone of the transaction's organization and records that a time zone has
// been chosen.
func SetTimezone(ctx context.Context, tx *OrgTx, zone string) error {
	return Change(ctx, tx, organizationZone, tx.Org, zone, false)
}

// FillTimezone is like SetTimezone, but it changes nothing and returns false if a time zone has
// already been chosen.
func FillTimezone(ctx context.Context, tx *OrgTx, zone string) (bool, error) {
	n, err := Exec(ctx, tx, organizationZone, tx.Org, zone, true)
	return n > 0, err
}

// ZoneOf returns the name of the time zone to store for a request, or "" if the request specifies
// no time zone.
func ZoneOf(z tenancy.ZoneRequest) string {
	if z.IsOffset {
		return tenancy.FixedZone(z.Minutes)
	}
	return z.Name
}
