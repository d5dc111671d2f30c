// Package key creates, rotates and revokes API keys, and authenticates requests with them.
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
	// Revocations is nil in a process that does not call credential.Listen. Such a process caches
	// keys for only five seconds.
	Revocations credential.Revocations
}

// Keys manages API keys. It is safe for concurrent use.
type Keys struct {
	db      *db.DB
	clock   clock.Clock
	notices *notice.Queue
	proofs  *proof.Proofs
	cache   *credential.Cache[keystore.FoundKey]
}

// New returns a Keys with an empty cache.
func New(d Deps) *Keys {
	s := &Keys{db: d.DB, clock: d.Clock, notices: d.Notices, proofs: d.Proofs}
	s.cache = credential.NewCache(d.Clock, d.Revocations, s.findKeys)
	return s
}

// Cached returns the key cache, so that the caller can remove revoked keys from it.
func (s *Keys) Cached() credential.Revocable { return s.cache }
