// Package password changes the address and password that a person signs in with, and resets
// forgotten passwords.
package password

import (
	"crier/platform/clock"
	"crier/tenancy/db"
	"crier/tenancy/notice"
	"crier/tenancy/proof"
)

// Deps holds the dependencies of New.
type Deps struct {
	DB      *db.DB
	Clock   clock.Clock
	Notices *notice.Queue
	Proofs  *proof.Proofs
}

// Passwords changes and resets passwords, and changes addresses. It is safe for concurrent use.
type Passwords struct {
	db      *db.DB
	clock   clock.Clock
	notices *notice.Queue
	proofs  *proof.Proofs
}

// New returns a new Passwords.
func New(d Deps) *Passwords {
	return &Passwords{db: d.DB, clock: d.Clock, notices: d.Notices, proofs: d.Proofs}
}
