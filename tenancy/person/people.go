// Package person implements the use cases of a person's own data.
package person

import (
	"crier/platform/clock"
	"crier/tenancy/db"
	"crier/tenancy/notice"
)

// Deps are the dependencies of New.
type Deps struct {
	DB      *db.DB
	Clock   clock.Clock
	Notices *notice.Queue
}

// People are the use cases of a person's own data. They are safe for concurrent use.
type People struct {
	db      *db.DB
	clock   clock.Clock
	notices *notice.Queue
}

// New returns People.
func New(d Deps) *People { return &People{db: d.DB, clock: d.Clock, notices: d.Notices} }
