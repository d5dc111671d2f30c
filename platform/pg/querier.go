package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Querier reads in the caller's transaction. A port takes it as a parameter if it must read in the
// transaction of its caller: with a second connection it could wait for the one that the caller
// holds.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}
