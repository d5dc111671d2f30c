// Package db contains what the tenancy packages share: the database and its transactions, the
// confirmation of principals, audit entries, and the statements that several packages need.
package db

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/jobs"
	"crier/platform/pg"
	"crier/tenancy"
)

// DB provides the tenancy packages with access to the database. It is safe for concurrent use.
//
// In these packages, a statement is a function that takes a transaction, or a DB if the statement
// runs in its own transaction. Unless documented otherwise, statements return Postgres errors
// unchanged. Fault converts these errors.
type DB struct {
	*pg.DB
	queue *jobs.Queue
	clock clock.Clock
	// ClockInjected is set to the result of clock.IsInjected. Tests can change it.
	ClockInjected bool
}

// New returns a DB, or the error from jobs.NewQueue.
func New(db *pg.DB, c clock.Clock) (*DB, error) {
	queue, err := jobs.NewQueue()
	if err != nil {
		return nil, err
	}
	return &DB{DB: db, queue: queue, clock: c, ClockInjected: clock.IsInjected(c)}, nil
}

// GateTx is a transaction, or part of one, that runs as pg.Gate. Its statements can access people's
// data. Within an organization, they can access only the data that determines who has access to
// that organization. A GateTx is not safe for concurrent use.
type GateTx struct {
	pgx.Tx
	db *DB
}

// OrgTx is a transaction, or part of one, whose statements see only one organization. An OrgTx is
// not safe for concurrent use.
type OrgTx struct {
	pgx.Tx
	Org tenancy.OrgID
	db  *DB
}

// InGate runs fn in a transaction as pg.Gate, and commits the transaction if fn returns nil. After
// a deadlock or a lock timeout, InGate can run fn again, so fn must overwrite any result of an
// earlier run. If fn returns a fault, InGate returns it unchanged. It converts other errors, from
// fn or from the commit, with Fault.
func (d *DB) InGate(ctx context.Context, op string, fn func(tx *GateTx) error) error {
	return Fault(op, d.InRole(ctx, pg.Gate, func(tx pgx.Tx) error { return fn(&GateTx{Tx: tx, db: d}) }))
}

// InOrg is like InGate, but fn sees only one organization's rows.
func (d *DB) InOrg(ctx context.Context, op string, org tenancy.OrgID, fn func(tx *OrgTx) error) error {
	return Fault(op, d.DB.InOrg(ctx, org.UUID(), func(tx pgx.Tx) error { return fn(&OrgTx{Tx: tx, Org: org, db: d}) }))
}

// Enter continues the transaction inside an organization. The GateTx must not be used until Leave
// has been called.
func (t *GateTx) Enter(ctx context.Context, org tenancy.OrgID) (*OrgTx, error) {
	if err := t.db.EnterOrg(ctx, t.Tx, org.UUID()); err != nil {
		return nil, err
	}
	return &OrgTx{Tx: t.Tx, Org: org, db: t.db}, nil
}

// Leave continues the transaction outside the organization. The OrgTx must not be used afterwards.
func (t *OrgTx) Leave(ctx context.Context) (*GateTx, error) {
	if err := t.db.EnterRole(ctx, t.Tx, pg.Gate); err != nil {
		return nil, err
	}
	return &GateTx{Tx: t.Tx, db: t.db}, nil
}

// AsGate runs fn as pg.Gate. If fn returns nil, the transaction then continues inside the
// organization.
func (t *OrgTx) AsGate(ctx context.Context, fn func(q pg.Querier) error) error {
	return t.db.AsGate(ctx, t.Tx, t.Org.UUID(), fn)
}

// AddTask adds a background task as part of the transaction; see jobs.Queue.
func (t *GateTx) AddTask(ctx context.Context, task jobs.Task) error {
	return t.db.queue.Add(ctx, t.Tx, task)
}

// Fault returns the fault that err wraps. If err does not wrap a fault, Fault returns the result of
// pg.Fault.
func Fault(op string, err error) error {
	if f := AsFault(err); f != nil {
		return f
	}
	return pg.Fault(op, err)
}

// AsFault returns the fault that err wraps, or nil if err does not wrap a fault.
func AsFault(err error) *fault.Error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f
	}
	return nil
}

// One returns the only row that a query returns, or pgx.ErrNoRows if the query returns no rows.
func One[T any](ctx context.Context, q pg.Querier, sql string, args ...any) (T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		var none T
		return none, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
}

// List returns all rows of a query.
func List[T any](ctx context.Context, q pg.Querier, sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}

// Column returns the values of a single-column query.
func Column[T any](ctx context.Context, q pg.Querier, sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

// Exec executes a statement and returns the number of affected rows.
func Exec(ctx context.Context, tx pgx.Tx, sql string, args ...any) (int, error) {
	tag, err := tx.Exec(ctx, sql, args...)
	return int(tag.RowsAffected()), err
}

// Change executes a statement. It returns pgx.ErrNoRows if no rows were affected.
func Change(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	n, err := Exec(ctx, tx, sql, args...)
	if err == nil && n == 0 {
		return pgx.ErrNoRows
	}
	return err
}

// Written returns a function that sets *n to the number of rows affected by a statement.
func Written(n *int) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		*n = int(tag.RowsAffected())
		return nil
	}
}
