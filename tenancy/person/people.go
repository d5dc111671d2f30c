// Package person reads and changes a person's own data: the profile, notification settings and
// identities.
package person

import (
	"crier/platform/clock"
	"crier/tenancy/db"
	"crier/tenancy/notice"
)

// Deps holds the dependencies of New.
type Deps struct {
	DB      *db.DB
	Clock   clock.Clock
	Notices *notice.Queue
}

// People reads and changes people's own data. It is safe for concurrent use.
type People struct {
	db      *db.DB
	clock   clock.Clock
	notices *notice.Queue
}

// New returns a new People.
func New(d Deps) *People { return &People{db: d.DB, clock: d.Clock, notices: d.Notices} }
