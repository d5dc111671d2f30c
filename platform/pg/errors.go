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

// What a client is told to wait when other transactions, or other calls of its organization, had what it needed: most
// take milliseconds.
const (
	lockedRetryAfter = time.Second
	busyRetryAfter   = time.Second
)

// ErrOrgBusy is returned by Read, WriteOrg and InOrg when other calls of the same organization had all the connections
// that it may have. Nothing was done. It says nothing of the database: calls of other organizations may work.
var ErrOrgBusy = errors.New("other calls of the organization have all its connections")

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

	codeCanceled = "57014" // by statement_timeout, or by the client's own request

	codeIdleInTx = "25P03" // this process was stopped in the middle of a transaction, which is rolled back
)

// awayClasses are the SQLSTATE classes of a server that cannot work now, whatever it is asked: connection exceptions,
// insufficient resources (a full disk, too many sessions), operator intervention (a shutdown, a statement timeout)
// and system errors.
var awayClasses = []string{"08", "53", "57", "58"}

// environmentClasses are the classes that blame the set-up and not the values of a statement: those of a server that
// is away, a wrong transaction state, a missing role or database, a conflict with other transactions, a missing
// grant, table or column, a lock that is not to be had, a broken configuration file, and a plan that a migration has
// changed.
var environmentClasses = append([]string{"0A", "25", "26", "28", "3D", "3F", "40", "42", "55", "F0"}, awayClasses...)

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
		return pe.Code == codeIdleInTx || slices.Contains(awayClasses, class(pe))
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

// IsRefused returns true when the database refused a statement because of a row or a value in it, so that the
// statement may work without that row: bad data, a broken constraint, an exception raised by a function, a limit, or
// a damaged page. Errors of the environment, such as a missing grant or a full disk, are not the row's: they are
// retried until they end.
func IsRefused(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && len(pe.Code) == 5 && !slices.Contains(environmentClasses, class(pe))
}

// IsLocked returns true when a statement failed because other transactions had what it needed: it may work soon, and
// without the row in question at once.
func IsLocked(err error) bool { return hasCode(err, codeLockTimeout, codeDeadlock, codeSerialization) }

// IsOfRows returns true when a statement may work with fewer rows, because one of them may be the cause: it was refused,
// ran into a lock, or was ended by the statement timeout. A statement that the caller itself cancelled does not count.
func IsOfRows(err error) bool {
	return IsRefused(err) || IsLocked(err) || hasCode(err, codeCanceled) && !errors.Is(err, context.Canceled)
}

// IsOrgBusy returns true when err is ErrOrgBusy.
func IsOrgBusy(err error) bool { return errors.Is(err, ErrOrgBusy) }

// IsEnvironment returns true when err says nothing of any row or value: the database is away, or what every statement
// needs is missing or in use. It may end.
func IsEnvironment(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || IsAway(err) || IsOrgBusy(err) {
		return err != nil
	}
	var pe *pgconn.PgError
	return errors.As(err, &pe) && !IsRefused(err)
}

// Reason is what Postgres said of a refusal, short and without the values of the row, for people who look after the
// service.
func Reason(err error) string {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return "it cannot be read."
	}
	name := pe.ConstraintName
	if name == "" {
		name = pe.Message[:min(len(pe.Message), 200)]
	}
	return strings.ToValidUTF8(pe.Code+" "+name, "") + "."
}

func class(pe *pgconn.PgError) string { return pe.Code[:min(2, len(pe.Code))] }

// Fault is the one way from an error of a query to a fault: Unavailable while the database is away or when other
// transactions had what it needed, RateLimited when other calls of the organization had all its connections, Invalid for
// a value that no column can hold, else Internal. nil stays nil. Errors with a meaning of their own (IsNoRows, IsUnique)
// are the caller's to tell first.
func Fault(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case IsAway(err):
		f := fault.Wrap(fault.Unavailable, op, "The database cannot be reached right now; try again soon.", err)
		f.RetryAfter = RetryAfter
		return f
	case IsOrgBusy(err):
		f := fault.Wrap(fault.RateLimited, op, "Your organization has too many requests in progress; try again in a second.", err)
		f.RetryAfter = busyRetryAfter
		return f
	case IsLocked(err):
		f := fault.Wrap(fault.Unavailable, op, "Too many changes are being made at the same time; try again soon.", err)
		f.RetryAfter = lockedRetryAfter
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
