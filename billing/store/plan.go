// Package store contains the queries of billing. They run in the transactions of callers that ask
// what a plan allows.
package store

import (
	"context"
	"time"

	"crier/platform/pg"
	"crier/tenancy"
)

const monthsSince = `-- billing.MonthsSince
select created_at from organization where id = $1`

// MonthsSince returns when the first billing month of an organization began. It returns the
// Postgres error, or pgx.ErrNoRows if there is no such organization.
func MonthsSince(ctx context.Context, q pg.Querier, org tenancy.OrgID) (at time.Time, err error) {
	return at, q.QueryRow(ctx, monthsSince, org).Scan(&at)
}
