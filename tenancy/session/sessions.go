// Package session implements sessions: finding the principal of a token, ending sessions, and the
// impersonation of members by instance administrators.
package session

import (
	"crier/platform/clock"
	"crier/tenancy/credential"
	"crier/tenancy/db"
	"crier/tenancy/notice"
	sessionstore "crier/tenancy/session/store"
)

// Deps are the dependencies of New.
type Deps struct {
	DB      *db.DB
	Clock   clock.Clock
	Notices *notice.Queue
}

// Sessions are the use cases of sessions. They are safe for concurrent use.
type Sessions struct {
	db      *db.DB
	clock   clock.Clock
	notices *notice.Queue
	// lookUps are not cached, so that a session ends at once in all processes.
	lookUps *credential.LookUps[sessionstore.Session]
}

// New returns Sessions.
func New(d Deps) *Sessions {
	s := &Sessions{db: d.DB, clock: d.Clock, notices: d.Notices}
	s.lookUps = credential.NewLookUps(s.findSessions)
	return s
}
