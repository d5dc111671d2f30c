// Package store keeps publishing's tables.
//
// Statements of a few lines stand beside the method that runs them. Long ones are files of the folder sql, whose
// README says how they are written, why they look up rows by "x = any (array[y])", and how they lock.
package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/platform/pg"
)

// Store reads and writes everything that is published.
type Store struct {
	db   *pg.DB
	node string
}

// New makes a store.
func New(db *pg.DB) *Store { return &Store{db: db} }

// At is the same store for a process of that name: timelines tell where a post was written, changed or paused.
func (s *Store) At(node string) *Store { return &Store{s.db, node} }

// Plan has every connection of the scheduler plan its large statements: a claim and a finish take ten to twenty times
// as long to plan as to carry out.
func (s *Store) Plan(ctx context.Context) error {
	return errors.Join(
		s.db.Plan(ctx, pg.Clock, claim, markCommitting, finish, sweep),
		s.db.Plan(ctx, pg.Sender, loadWork, workMedia))
}

// into reads all rows of a statement into a slice.
func into[T any](out *[]T, scan pgx.RowToFunc[T]) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*out, err = pgx.CollectRows(rows, scan)
		return err
	}
}

// each calls do for every row of a statement, once all are read.
func each[T any](scan pgx.RowToFunc[T], do func(T)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, scan)
		for _, row := range all {
			do(row)
		}
		return err
	}
}

// uuids is a list of ids as Postgres takes it.
func uuids[T any](ids []id.ID[T]) [][16]byte {
	out := make([][16]byte, len(ids))
	for i, v := range ids {
		out[i] = v.UUID()
	}
	return out
}
