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

// RetryAfter is the retry delay that Fault suggests while the database cannot be reached. A
// database restart takes about that long.
const RetryAfter = 3 * time.Second

// Fault suggests these retry delays if a call failed because of conflicting transactions, or
// because the organization's other calls hold all the connections it may use. Most of these
// transactions and calls take only milliseconds.
const (
	lockedRetryAfter = time.Second
	busyRetryAfter   = time.Second
)

// ErrOrgBusy is returned by Read, WriteOrg and InOrg if the organization's other calls hold all the
// connections the organization may use. Nothing was executed. Other organizations are not affected.
var ErrOrgBusy = errors.New("other calls of the organization are using all its connections")

// These are the SQLSTATE codes that this package handles. Postgres sends codeCanceled after
// statement_timeout and after a client's cancel request. It sends codeIdleInTx if it has rolled
// back a transaction because this process was idle in it for too long.
const (
	codeUnique         = "23505"
	codeDeadlock       = "40P01"
	codeSerialization  = "40001"
	codeLockTimeout    = "55P03"
	codePlanChanged    = "0A000"
	codeNotInCharset   = "22021"
	codeUntranslatable = "22P05"
	codeOutOfRange     = "22003"
	codeCanceled       = "57014"
	codeIdleInTx       = "25P03"
	codeStarting       = "57P03"
)

// awayClasses are the SQLSTATE classes of errors that mean the server currently cannot execute
// statements: connection exceptions, insufficient resources (a full disk, too many sessions),
// operator intervention (a shutdown, a statement timeout) and system errors.
var awayClasses = []string{"08", "53", "57", "58"}

// environmentClasses are the SQLSTATE classes of errors caused by the environment and not by a
// statement's values. They include awayClasses.
//
// The other classes mean a plan invalidated by a migration (0A), an invalid transaction state (25),
// a missing statement, role, database or schema (26, 28, 3D, 3F), a conflict with other
// transactions (40), a missing grant, table or column (42), an unavailable lock (55), or an invalid
// configuration file (F0).
var environmentClasses = append([]string{"0A", "25", "26", "28", "3D", "3F", "40", "42", "55", "F0"}, awayClasses...)

// errClosed is joined to errors that occur after DB.Close.
var errClosed = errors.New("the pools are closed")

// awayErrors are the client-side errors that mean the server cannot be reached.
var awayErrors = []error{
	errClosed, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed,
	syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE,
}

// IsUnique reports whether err is a violation of the named unique constraint or index; "" matches
// any.
func IsUnique(err error, constraint string) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.Code == codeUnique && (constraint == "" || pe.ConstraintName == constraint)
}

// IsNoRows reports whether a query for one row found none. Call it before Fault, which converts
// such an error to Internal.
func IsNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// IsAway reports whether the database cannot be reached or did not respond in time, so that a later
// call may succeed. A write that failed this way may have been committed. IsAway returns false if
// the caller itself canceled the call.
func IsAway(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	if pe := (*pgconn.PgError)(nil); errors.As(err, &pe) {
		return pe.Code == codeIdleInTx || slices.Contains(awayClasses, class(pe))
	}
	if slices.ContainsFunc(awayErrors, func(away error) bool { return errors.Is(err, away) }) {
		return true
	}
	var ce *pgconn.ConnectError
	var ne net.Error
	return errors.As(err, &ce) || errors.As(err, &ne)
}

// IsSlow reports whether the database did not respond in time or responded that it does not accept
// connections yet.
func IsSlow(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || hasCode(err, codeStarting)
}

// IsRefused reports whether the database rejected a statement because of a row or a value in it:
// invalid data, a violated constraint, an exception raised by a function, a limit, or a damaged
// page. The statement may succeed without that row.
//
// IsRefused returns false for errors caused by the environment, such as a missing grant or a full
// disk. Callers retry after such errors until the cause is gone.
func IsRefused(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && len(pe.Code) == 5 && !slices.Contains(environmentClasses, class(pe))
}

// IsLocked reports whether a statement failed because of other transactions: a lock timeout, a
// deadlock or a serialization failure. The statement may succeed soon, or immediately if it leaves
// out the contended row.
func IsLocked(err error) bool { return hasCode(err, codeLockTimeout, codeDeadlock, codeSerialization) }

// IsRolledBack reports whether Postgres returned an error that ended the transaction but not the
// connection, which means that nothing was committed.
func IsRolledBack(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.SeverityUnlocalized == "ERROR"
}

// IsRowError reports whether a row may have caused the error, so that the statement may succeed
// with fewer rows. This is the case if the statement was rejected, ran into a lock, or reached the
// statement timeout. IsRowError returns false if the caller itself canceled the statement.
func IsRowError(err error) bool {
	return IsRefused(err) || IsLocked(err) || hasCode(err, codeCanceled) && !errors.Is(err, context.Canceled)
}

// IsOrgBusy reports whether err matches ErrOrgBusy. If so, nothing was executed, and a later call
// may succeed.
func IsOrgBusy(err error) bool { return errors.Is(err, ErrOrgBusy) }

// IsEnvironment reports whether err has a cause other than a row or a value. Either the call was
// canceled, the database cannot be reached, or something that every statement needs is missing or
// in use. A later call may succeed.
func IsEnvironment(err error) bool {
	if errors.Is(err, context.Canceled) || IsAway(err) || IsOrgBusy(err) {
		return true
	}
	var pe *pgconn.PgError
	return errors.As(err, &pe) && !IsRefused(err)
}

// Reason returns a sentence that tells operators why Postgres rejected a statement. The sentence
// consists of the SQLSTATE and the constraint's name. If there is no constraint, it contains
// Postgres's message, truncated to 200 bytes, in place of the name. The sentence omits the detail
// line, which would repeat the row's values.
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

// Fault converts an error from a query to a fault. It returns nil for nil. The kind is Unavailable
// if IsAway or IsLocked returns true, RateLimited for ErrOrgBusy, Invalid for a value that no
// column can hold, and Internal otherwise.
//
// An error that is already Unavailable is returned unchanged, because it names what is unavailable,
// which may not be the database. Callers must first handle the errors that have a specific meaning
// (IsNoRows, IsUnique).
func Fault(op string, err error) error {
	if f := (*fault.Error)(nil); errors.As(err, &f) && f.Kind == fault.Unavailable {
		return err
	}
	switch {
	case err == nil:
		return nil
	case IsAway(err):
		f := fault.Wrap(fault.Unavailable, op, "The database cannot be reached right now; try again soon.", err)
		f.RetryAfter = RetryAfter
		return f
	case IsOrgBusy(err):
		const message = "Your organization has too many requests in progress; try again in a second."
		f := fault.Wrap(fault.RateLimited, op, message, err)
		f.RetryAfter = busyRetryAfter
		return f
	case IsLocked(err):
		const message = "Too many changes are being made at the same time; try again soon."
		f := fault.Wrap(fault.Unavailable, op, message, err)
		f.RetryAfter = lockedRetryAfter
		return f
	case hasCode(err, codeNotInCharset, codeUntranslatable):
		const message = "A text contains a character that cannot be stored, such as NUL (U+0000)."
		return fault.Wrap(fault.Invalid, op, message, err)
	case hasCode(err, codeOutOfRange):
		return fault.Wrap(fault.Invalid, op, "A number is too large or too small.", err)
	}
	return fault.Wrap(fault.Internal, op, "", err)
}

func hasCode(err error, codes ...string) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && slices.Contains(codes, pe.Code)
}
