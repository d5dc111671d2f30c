// Package session finds the principal for a session token, ends sessions, and lets instance
// administrators impersonate members.
package session

import (
	"crier/platform/clock"
	"crier/tenancy/credential"
	"crier/tenancy/db"
	"crier/tenancy/notice"
	sessionstore "crier/tenancy/session/store"
)

// Deps holds the dependencies of New.
type Deps struct {
	DB      *db.DB
	Clock   clock.Clock
	Notices *notice.Queue
}

// Sessions manages sessions and impersonations. It is safe for concurrent use.
type Sessions struct {
	db      *db.DB
	clock   clock.Clock
	notices *notice.Queue
	// lookUps are not cached, so that all processes reject a session as soon as it ends.
	lookUps *credential.Lookups[sessionstore.Session]
}

// New returns a new Sessions.
func New(d Deps) *Sessions {
	s := &Sessions{db: d.DB, clock: d.Clock, notices: d.Notices}
	s.lookUps = credential.NewLookups(s.findSessions)
	return s
}
