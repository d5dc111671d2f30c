// Package key implements API keys: creating, rotating and revoking them, and finding the principal
// of a key.
package key

import (
	"crier/platform/clock"
	"crier/tenancy/credential"
	"crier/tenancy/db"
	keystore "crier/tenancy/key/store"
	"crier/tenancy/notice"
	"crier/tenancy/proof"
)

// Deps are the dependencies of New.
type Deps struct {
	DB      *db.DB
	Clock   clock.Clock
	Notices *notice.Queue
	Proofs  *proof.Proofs
	// Revocations is nil in a process that does not call credential.Listen. Such a process caches a
	// found key for only five seconds.
	Revocations credential.Revocations
}

// Keys are the use cases of API keys. They are safe for concurrent use.
type Keys struct {
	db      *db.DB
	clock   clock.Clock
	notices *notice.Queue
	proofs  *proof.Proofs
	cache   *credential.Cache[keystore.FoundKey]
}

// New returns Keys.
func New(d Deps) *Keys {
	s := &Keys{db: d.DB, clock: d.Clock, notices: d.Notices, proofs: d.Proofs}
	s.cache = credential.NewCache(d.Clock, d.Revocations, s.findKeys)
	return s
}

// Cached returns the cache of the keys. Revocations remove keys from it.
func (s *Keys) Cached() credential.Revocable { return s.cache }
