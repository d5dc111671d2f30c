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

// RetryAfter is the Retry-After of Fault while the database is away, about the duration of a restart.
const RetryAfter = 3 * time.Second

// The Retry-After of Fault when other transactions or other calls of the same organization were in the way. Most of
// them take milliseconds.
const (
	lockedRetryAfter = time.Second
	busyRetryAfter   = time.Second
)

// ErrOrgBusy is returned by Read, WriteOrg and InOrg when other calls of the same organization hold all the
// connections that it may use. Nothing was executed. Calls of other organizations are not affected.
var ErrOrgBusy = errors.New("other calls of the organization have all its connections")

// SQLSTATE codes that this package handles. codeCanceled is sent after statement_timeout and after a cancel request
// of the client. codeIdleInTx is sent when this process was paused inside a transaction, which Postgres has rolled
// back.
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

// awayClasses are the SQLSTATE classes of a server that cannot execute any statement now: connection exceptions,
// insufficient resources (a full disk, too many sessions), operator intervention (a shutdown, a statement timeout)
// and system errors.
var awayClasses = []string{"08", "53", "57", "58"}

// environmentClasses are the SQLSTATE classes whose cause is the environment and not the values of a statement:
// awayClasses, an invalid transaction state, a missing role or database, a conflict with other transactions, a
// missing grant, table or column, an unavailable lock, an invalid configuration file, and a plan that a migration has
// invalidated.
var environmentClasses = append([]string{"0A", "25", "26", "28", "3D", "3F", "40", "42", "55", "F0"}, awayClasses...)

// errClosed is joined to errors that occur after DB.Close.
var errClosed = errors.New("the pools are closed")

// awayErrors are the errors of the client side that mean that the server cannot be reached.
var awayErrors = []error{
	errClosed, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed,
	syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE,
}

// IsUnique returns true when err is a violation of the named unique constraint or index; "" matches any.
func IsUnique(err error, constraint string) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.Code == codeUnique && (constraint == "" || pe.ConstraintName == constraint)
}

// IsNoRows returns true when a query for one row found none. Fault makes such an error Internal, so callers check it
// before.
func IsNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// IsAway returns true when the database cannot be reached or did not answer in time, so that a later call may work. A
// write that failed this way may have been committed. It returns false for what the caller itself cancelled.
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

// IsSlow returns true when the database is there, and did not answer in time or does not accept connections yet.
func IsSlow(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || hasCode(err, codeStarting)
}

// IsRefused returns true when the database refused a statement because of a row or a value in it, so that the
// statement may work without that row: invalid data, a violated constraint, an exception raised by a function, a
// limit, or a damaged page. It returns false for errors of the environment, such as a missing grant or a full disk:
// callers retry those until the cause is gone.
func IsRefused(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && len(pe.Code) == 5 && !slices.Contains(environmentClasses, class(pe))
}

// IsLocked returns true when a statement failed because of other transactions: a lock timeout, a deadlock or a
// serialization failure. It may work soon, and at once without the contended row.
func IsLocked(err error) bool { return hasCode(err, codeLockTimeout, codeDeadlock, codeSerialization) }

// IsRolledBack returns true if Postgres returned an error that ended the transaction but not the
// connection, so nothing was committed.
func IsRolledBack(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.SeverityUnlocalized == "ERROR"
}

// IsRowError returns true when a statement may work with fewer rows, because one of them may be the cause: it was
// refused, met a lock, or reached the statement timeout. It returns false for a statement that the caller itself
// cancelled.
func IsRowError(err error) bool {
	return IsRefused(err) || IsLocked(err) || hasCode(err, codeCanceled) && !errors.Is(err, context.Canceled)
}

// IsOrgBusy returns true when err matches ErrOrgBusy: nothing was executed, and a later call may work.
func IsOrgBusy(err error) bool { return errors.Is(err, ErrOrgBusy) }

// IsEnvironment returns true when the cause of err is no row and no value: the database is away, or something that
// every statement needs is missing or in use. A later call may work.
func IsEnvironment(err error) bool {
	if errors.Is(err, context.Canceled) || IsAway(err) || IsOrgBusy(err) {
		return true
	}
	var pe *pgconn.PgError
	return errors.As(err, &pe) && !IsRefused(err)
}

// Reason returns why Postgres refused a statement, for operators: the SQLSTATE and the constraint, or else the
// message, cut at 200 bytes. It holds no detail line, which would repeat values of the row.
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

// Fault converts the error of a query to a fault; nil stays nil. The kind is Unavailable while the
// database is away or when other transactions were in the way, RateLimited for ErrOrgBusy, Invalid
// for a value that no column can hold, and otherwise Internal. An error that is already Unavailable
// is returned unchanged, because it names what is away, which may not be the database. The caller
// first handles errors with a meaning of their own (IsNoRows, IsUnique).
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
		const message = "A text holds a character that cannot be stored, such as NUL (U+0000)."
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
