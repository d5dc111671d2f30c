// Package store contains the billing queries. They run in their callers' transactions.
package store

import (
	"context"
	"time"

	"crier/platform/pg"
	"crier/tenancy"
)

const monthsSince = `-- billing.MonthsSince
select created_at from organization where id = $1`

// MonthsSince returns when an organization's first billing month began. It returns Postgres errors
// unchanged, and pgx.ErrNoRows if the organization does not exist.
func MonthsSince(ctx context.Context, q pg.Querier, org tenancy.OrgID) (at time.Time, err error) {
	return at, q.QueryRow(ctx, monthsSince, org).Scan(&at)
}
