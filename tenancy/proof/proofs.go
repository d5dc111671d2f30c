// Package proof verifies that people are who they claim to be. It checks passwords, second-factor
// codes and how recently people signed in.
package proof

import (
	"runtime"
	"sync/atomic"

	"github.com/alexedwards/argon2id"

	"crier/platform/clock"
	"crier/platform/limit"
	"crier/platform/secret"
	"crier/tenancy/db"
)

// Deps holds the dependencies of New.
type Deps struct {
	DB    *db.DB
	Clock clock.Clock
	// Keyring opens second-factor secrets.
	Keyring *secret.Keyring
}

// Proofs checks proofs and hashes passwords. It is safe for concurrent use.
type Proofs struct {
	db      *db.DB
	clock   clock.Clock
	keyring *secret.Keyring
	hash    *argon2id.Params
	slots   *limit.Fair[string] // limits concurrent password hashing, fairly by site
	decoy   string              // the hash to compare with if the person is unknown
	hashed  atomic.Int64        // passwords hashed or compared
}

// New returns a new Proofs. It hashes one password, which takes about as long as a login. It
// returns an error if the system's source of randomness fails.
func New(d Deps) (*Proofs, error) {
	s := &Proofs{
		db: d.DB, clock: d.Clock, keyring: d.Keyring, slots: newSlots(hashesAtOnce(runtime.GOMAXPROCS(0))),
		hash: &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32},
	}
	var err error
	s.decoy, err = argon2id.CreateHash("no such person", s.hash)
	return s, err
}
