package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Querier reads in a transaction of its caller. A port has it as a parameter when its answer must be read in the
// transaction of the asker: a second connection could wait for the one that the asker has.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}
