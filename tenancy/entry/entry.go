// Package entry implements how a sign-in ends: with a further step, or with a session in a browser
// that is remembered.
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
	// DeleteGrace is how long the deletion of an account can be undone.
	DeleteGrace time.Duration
}

// Entry begins the sessions, or the further sign-in steps, of people who have proved their first
// factor. It is safe for concurrent use.
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
