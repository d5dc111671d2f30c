// Package store keeps publishing's tables, one file per table. Only publishing/service uses it.
package store

import (
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

// uuids is a list of ids as Postgres takes it.
func uuids[T any](ids []id.ID[T]) [][16]byte {
	out := make([][16]byte, len(ids))
	for i, v := range ids {
		out[i] = v.UUID()
	}
	return out
}
