package pg

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/fault"
)

// RetryAfter is what a client is told to wait while the database is away: about as long as a restart takes.
const RetryAfter = 3 * time.Second

// SQLSTATE codes that are acted upon.
const (
	codeUnique         = "23505"
	codeDeadlock       = "40P01"
	codeSerialization  = "40001"
	codeLockTimeout    = "55P03"
	codePlanChanged    = "0A000"
	codeNotInCharset   = "22021"
	codeUntranslatable = "22P05"
	codeOutOfRange     = "22003"

	classConnection     = "08"
	codeAdminShutdown   = "57P01"
	codeCrashShutdown   = "57P02"
	codeCannotConnect   = "57P03"
	codeTooManySessions = "53300"
	codeIdleInTx        = "25P03" // this process was stopped in the middle of a transaction, which is rolled back
)

// errClosed marks what fails because the pools were closed under it.
var errClosed = errors.New("the pools are closed")

// IsUnique tells whether err is a violation of the named unique constraint or index; "" means any.
func IsUnique(err error, constraint string) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.Code == codeUnique && (constraint == "" || pe.ConstraintName == constraint)
}

// IsNoRows tells whether a query for one row found none.
func IsNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// IsAway tells whether err means that the database cannot be reached or does not answer in time, so that the same may work soon.
// A write that failed so may have happened all the same. What the caller itself cancelled is not the database's fault.
func IsAway(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	if pe := (*pgconn.PgError)(nil); errors.As(err, &pe) {
		return strings.HasPrefix(pe.Code, classConnection) || slices.Contains([]string{codeAdminShutdown, codeCrashShutdown, codeCannotConnect, codeTooManySessions, codeIdleInTx}, pe.Code)
	}
	for _, gone := range []error{errClosed, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, gone) {
			return true
		}
	}
	var ce *pgconn.ConnectError
	var ne net.Error
	return errors.As(err, &ce) || errors.As(err, &ne)
}

// IsRefused tells whether the database took a statement in and refused it for what it says, so that the same would be refused again:
// bad data, a broken constraint or a wrong statement. Everything else may work later.
func IsRefused(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && len(pe.Code) == 5 && slices.Contains([]string{"21", "22", "23", "42"}, pe.Code[:2])
}

// Fault is the one way from an error of a query to a fault: Unavailable while the database is away, Invalid for a value that no column
// can hold, else Internal. nil stays nil. Errors with a meaning of their own (IsNoRows, IsUnique) are the caller's to tell first.
func Fault(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case IsAway(err):
		f := fault.Wrap(fault.Unavailable, op, "The database cannot be reached right now; try again soon.", err)
		f.RetryAfter = RetryAfter
		return f
	case hasCode(err, codeNotInCharset, codeUntranslatable):
		return fault.Wrap(fault.Invalid, op, "A text holds a character that cannot be stored, such as NUL (U+0000).", err)
	case hasCode(err, codeOutOfRange):
		return fault.Wrap(fault.Invalid, op, "A number is too large or too small.", err)
	}
	return fault.Wrap(fault.Internal, op, "", err)
}

func hasCode(err error, codes ...string) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && slices.Contains(codes, pe.Code)
}
