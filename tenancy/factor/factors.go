// Package factor enables and disables second factors and manages their recovery codes.
package factor

import (
	"regexp"
	"strings"

	"crier/platform/clock"
	"crier/platform/secret"
	"crier/tenancy/db"
	"crier/tenancy/notice"
	"crier/tenancy/proof"
)

// Deps are the dependencies of New.
type Deps struct {
	DB    *db.DB
	Clock clock.Clock
	// Keyring seals second-factor secrets.
	Keyring *secret.Keyring
	Notices *notice.Queue
	Proofs  *proof.Proofs
	// BaseURL is the service's URL. Authenticator apps show its host.
	BaseURL string
}

// Factors enables and disables second factors. It is safe for concurrent use.
type Factors struct {
	db      *db.DB
	clock   clock.Clock
	keyring *secret.Keyring
	notices *notice.Queue
	proofs  *proof.Proofs
	baseURL string
}

// New returns a Factors with the given dependencies.
func New(d Deps) *Factors {
	return &Factors{
		db: d.DB, clock: d.Clock, keyring: d.Keyring, notices: d.Notices, proofs: d.Proofs, baseURL: d.BaseURL,
	}
}

var portForm = regexp.MustCompile(`[:/].*$`)

// host returns the service's host without the port.
func (s *Factors) host() string {
	return portForm.ReplaceAllString(strings.TrimPrefix(strings.TrimPrefix(s.baseURL, "https://"), "http://"), "")
}
