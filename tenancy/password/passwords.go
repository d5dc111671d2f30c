// Package password implements changing the password and the address that a person signs in with,
// and resetting a forgotten password.
package password

import (
	"crier/platform/clock"
	"crier/tenancy/db"
	"crier/tenancy/notice"
	"crier/tenancy/proof"
)

// Deps are the dependencies of New.
type Deps struct {
	DB      *db.DB
	Clock   clock.Clock
	Notices *notice.Queue
	Proofs  *proof.Proofs
}

// Passwords are the use cases of passwords and addresses. They are safe for concurrent use.
type Passwords struct {
	db      *db.DB
	clock   clock.Clock
	notices *notice.Queue
	proofs  *proof.Proofs
}

// New returns Passwords.
func New(d Deps) *Passwords {
	return &Passwords{db: d.DB, clock: d.Clock, notices: d.Notices, proofs: d.Proofs}
}
