package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Querier reads in the caller's transaction. A port takes a Querier if it must read in that
// transaction. A read on a second connection could wait for the connection that the caller holds.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}
