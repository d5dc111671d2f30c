package pg

import (
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATE codes that are acted upon.
const (
	codeUnique        = "23505"
	codeDeadlock      = "40P01"
	codeSerialization = "40001"
	codeLockTimeout   = "55P03"
	codePlanChanged   = "0A000"
)

// IsUnique tells whether err is a violation of the named unique constraint or index; "" means any.
func IsUnique(err error, constraint string) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.Code == codeUnique && (constraint == "" || pe.ConstraintName == constraint)
}

// IsNoRows tells whether a query for one row found none.
func IsNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

func hasCode(err error, codes ...string) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && slices.Contains(codes, pe.Code)
}
