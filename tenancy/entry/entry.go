// Package entry begins a session if a sign-in is complete, and otherwise begins the next sign-in
// step. It also remembers the browsers that people sign in with.
package entry

import (
	"time"

	"crier/platform/clock"
	"crier/tenancy/db"
	"crier/tenancy/notice"
)

// Deps are the dependencies of New.
type Deps struct {
	DB      *db.DB
	Clock   clock.Clock
	Notices *notice.Queue
	// DeleteGrace is how long an account's deletion can be undone.
	DeleteGrace time.Duration
}

// Entry begins sessions, or further sign-in steps, for people whose first factor has been verified.
// It is safe for concurrent use.
type Entry struct {
	db      *db.DB
	clock   clock.Clock
	notices *notice.Queue
	grace   time.Duration
}

// New returns an Entry.
func New(d Deps) *Entry {
	return &Entry{db: d.DB, clock: d.Clock, notices: d.Notices, grace: d.DeleteGrace}
}
