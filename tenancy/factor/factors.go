// Package factor implements second factors: enabling one, its recovery codes, and disabling it.
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
	// Keyring seals the secrets of second factors.
	Keyring *secret.Keyring
	Notices *notice.Queue
	Proofs  *proof.Proofs
	// BaseURL is the address of the service. Authenticators show its host.
	BaseURL string
}

// Factors are the use cases of second factors. They are safe for concurrent use.
type Factors struct {
	db      *db.DB
	clock   clock.Clock
	keyring *secret.Keyring
	notices *notice.Queue
	proofs  *proof.Proofs
	baseURL string
}

// New returns Factors.
func New(d Deps) *Factors {
	return &Factors{
		db: d.DB, clock: d.Clock, keyring: d.Keyring, notices: d.Notices, proofs: d.Proofs, baseURL: d.BaseURL,
	}
}

var portForm = regexp.MustCompile(`[:/].*$`)

// host returns the host of the service without its port.
func (s *Factors) host() string {
	return portForm.ReplaceAllString(strings.TrimPrefix(strings.TrimPrefix(s.baseURL, "https://"), "http://"), "")
}
