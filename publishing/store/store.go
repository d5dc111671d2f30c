// Package store reads and writes the tables of publishing. Only publishing/service, publishing/sender,
// publishing/pictures, publishing/webhook, publishing/incident and publishing/access use it.
//
// Statements of a few lines are beside the method that runs them. Long ones are files of the folder sql: its README
// describes how they are written, why they look up rows by "x = any (array[y])", and how they lock.
//
// The columns of a post that people write and lists read are in postrow.go and sql/insert_posts.sql, and nowhere else.
package store

import (
	"context"
	"errors"

	"crier/platform/id"
	"crier/platform/pg"
)

// Store reads and writes the tables of publishing. Unless a method names another error, it returns the error of
// Postgres, which pg.Fault converts. A method that takes an organization works within its row level security: rows of
// other organizations do not exist for it. The methods without one are for the scheduler, and read and write the rows
// of all organizations. A Store is safe for concurrent use.
type Store struct {
	*pg.DB
	Node string
}

// New returns a Store whose entries in timelines name no process: see At.
func New(db *pg.DB) *Store { return &Store{DB: db} }

// At returns the same Store for the process named node: timelines show where a post was written, changed or paused.
func (s *Store) At(node string) *Store { return &Store{DB: s.DB, Node: node} }

// Plan makes every idle connection of the scheduler plan its large statements, because planning a claim or a finish
// takes ten to twenty times as long as executing it. It returns the errors of Postgres; a Store works without it.
func Plan(ctx context.Context, d *Store) error {
	return errors.Join(
		d.Plan(ctx, pg.Clock, claim, markCommitting, finish, sweep),
		d.Plan(ctx, pg.Sender, loadWork, workMedia))
}

// uuids returns ids as a parameter of the type uuid[]. Without ids it is an empty array and not null: "<> all (null)"
// is never true.
func uuids[T any](ids []id.ID[T]) [][16]byte {
	out := make([][16]byte, len(ids))
	for i, v := range ids {
		out[i] = v.UUID()
	}
	return out
}
