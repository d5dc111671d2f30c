// Package login implements sign-ins. A person signs in with an email address and a password, or
// through an identity provider, and then completes any further steps.
package login

import (
	"context"
	"time"

	"crier/platform/clock"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/entry"
	"crier/tenancy/notice"
	"crier/tenancy/proof"
)

// Factors enrolls a second factor during a sign-in.
type Factors interface {
	// BeginFactor begins the enrollment of a second factor and returns the factor's secret. by is
	// the hash of the sign-in that begins the enrollment.
	BeginFactor(ctx context.Context, tx *db.GateTx, op string, person tenancy.Person, by []byte) (tenancy.Secret, error)
	// ConfirmFactor enables a second factor and returns the recovery codes. If the code is
	// rejected, refusal is the reason and err is nil. The caller must then still commit the
	// transaction, so that the attempt is counted.
	ConfirmFactor(ctx context.Context, tx *db.GateTx, op string, person tenancy.PersonID, code string, from tenancy.Source) (
		codes []string, refusal, err error)
}

// Deletions restores accounts that are marked for deletion.
type Deletions interface {
	// RestoreAccount undoes the deletion of an account and of the organizations that were deleted
	// with it, and returns those organizations. now must be the database's time.
	RestoreAccount(ctx context.Context, tx *db.GateTx, person tenancy.Person, now time.Time, from tenancy.Source) (
		restored []tenancy.OrgID, err error)
}

// Access is notified when organizations become accessible again.
type Access interface {
	// AccessChanged is called after the change has been committed.
	AccessChanged(ctx context.Context, orgs ...tenancy.OrgID) error
}

// Deps are the dependencies of New.
type Deps struct {
	DB      *db.DB
	Clock   clock.Clock
	Keyring *secret.Keyring
	Notices *notice.Queue
	Proofs  *proof.Proofs
	Entry   *entry.Entry
	// FrontendURL is the dashboard's URL, without a trailing slash.
	FrontendURL string
	// Providers is nil on an instance without identity providers.
	Providers Providers
	Factors   Factors
	Deletions Deletions
	Access    Access
}

// Logins implements sign-ins. It is safe for concurrent use.
type Logins struct {
	db          *db.DB
	clock       clock.Clock
	keyring     *secret.Keyring
	notices     *notice.Queue
	proofs      *proof.Proofs
	entry       *entry.Entry
	frontendURL string
	providers   Providers
	factors     Factors
	deletions   Deletions
	access      Access
}

// New returns a Logins with the given dependencies.
func New(d Deps) *Logins {
	return &Logins{
		db: d.DB, clock: d.Clock, keyring: d.Keyring, notices: d.Notices, proofs: d.Proofs, entry: d.Entry,
		frontendURL: d.FrontendURL, providers: d.Providers, factors: d.Factors, deletions: d.Deletions,
		access: d.Access,
	}
}
