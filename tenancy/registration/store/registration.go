// Package store checks whether any organization exists. Only tenancy/registration uses it.
package store

import (
	"context"

	"crier/tenancy/db"
)

const registrationLock = `-- tenancy.RegistrationLock
select pg_advisory_xact_lock(hashtext('crier.registration'))`

const organizationAny = `-- tenancy.OrganizationAny
select exists (select from organization)`

// AnyOrganization reports whether any organization exists. If lock is set, concurrent calls with
// lock set wait until this transaction ends.
func AnyOrganization(ctx context.Context, tx *db.GateTx, lock bool) (exists bool, err error) {
	if lock {
		if _, err := db.Exec(ctx, tx, registrationLock); err != nil {
			return false, err
		}
	}
	err = tx.QueryRow(ctx, organizationAny).Scan(&exists)
	return exists, err
}
