// Package store reads and writes the tables of tenancy. Only tenancy/service uses it.
package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"crier/platform/jobs"
	"crier/platform/pg"
	"crier/tenancy"
)

// Store reads and writes organizations, people and their credentials. Its methods return the errors of Postgres
// unchanged. It is safe for concurrent use.
type Store struct {
	db    *pg.DB
	queue *jobs.Queue
}

// New returns a Store. It uses db as pg.Gate, pg.Keys and pg.Sessions, and as a tenant for the rows of one organization.
// The error is that of jobs.NewQueue.
func New(db *pg.DB) (*Store, error) {
	queue, err := jobs.NewQueue()
	if err != nil {
		return nil, err
	}
	return &Store{db: db, queue: queue}, nil
}

// GateTx is a transaction, or a part of one, in the role pg.Gate. Its methods reach the rows of people, and of
// organizations only what decides about access.
type GateTx struct {
	store *Store
	tx    pgx.Tx
}

// OrgTx is a transaction, or a part of one, in which all statements see one organization.
type OrgTx struct {
	store *Store
	tx    pgx.Tx
	org   tenancy.OrgID
}

// InGate runs fn in a transaction and commits when fn returns nil. fn may run again after a deadlock or a lock timeout,
// so it changes nothing else. InGate returns the error of fn or of the commit.
func (s *Store) InGate(ctx context.Context, fn func(tx *GateTx) error) error {
	return s.db.InRole(ctx, pg.Gate, func(tx pgx.Tx) error { return fn(&GateTx{store: s, tx: tx}) })
}

// InOrg is InGate for one organization.
func (s *Store) InOrg(ctx context.Context, org tenancy.OrgID, fn func(tx *OrgTx) error) error {
	return s.db.InOrg(ctx, org.UUID(), func(tx pgx.Tx) error { return fn(&OrgTx{store: s, tx: tx, org: org}) })
}

// Enter continues the transaction in an organization. The GateTx must not be used before Leave.
func (t *GateTx) Enter(ctx context.Context, org tenancy.OrgID) (*OrgTx, error) {
	if err := t.store.db.EnterOrg(ctx, t.tx, org.UUID()); err != nil {
		return nil, err
	}
	return &OrgTx{store: t.store, tx: t.tx, org: org}, nil
}

// Leave continues the transaction outside of the organization. The OrgTx must not be used any more.
func (t *OrgTx) Leave(ctx context.Context) (*GateTx, error) {
	if err := t.store.db.EnterRole(ctx, t.tx, pg.Gate); err != nil {
		return nil, err
	}
	return &GateTx{store: t.store, tx: t.tx}, nil
}

// Querier returns what reads in the transaction, for a port.
func (t *OrgTx) Querier() pg.Querier { return t.tx }

// one returns the row of a query, or pgx.ErrNoRows.
func one[T any](ctx context.Context, tx pgx.Tx, sql string, args ...any) (T, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		var none T
		return none, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
}

// list returns the rows of a query.
func list[T any](ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}

// exec executes a statement and returns the number of rows that it changed.
func exec(ctx context.Context, tx pgx.Tx, sql string, args ...any) (int, error) {
	tag, err := tx.Exec(ctx, sql, args...)
	return int(tag.RowsAffected()), err
}

// change executes a statement and returns pgx.ErrNoRows when it changed none.
func change(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	n, err := exec(ctx, tx, sql, args...)
	if err == nil && n == 0 {
		return pgx.ErrNoRows
	}
	return err
}
