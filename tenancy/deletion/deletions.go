// Package deletion implements the deletion of accounts and organizations. A requested deletion can
// be undone for a limited time. After that, the data is purged.
package deletion

import (
	"context"
	"log/slog"
	"time"

	"crier/platform/batch"
	"crier/platform/clock"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/notice"
	"crier/tenancy/proof"
)

// Access is notified when organizations become accessible or inaccessible.
type Access interface {
	// AccessChanged is called after the change has been committed.
	AccessChanged(ctx context.Context, orgs ...tenancy.OrgID) error
}

// Publishing stops an organization's posts from being published and deletes their data.
type Publishing interface {
	// Stop stops an organization from publishing. Once Stop has returned, no further platform call
	// can begin.
	Stop(ctx context.Context, org tenancy.OrgID, by string) error
	// ForgetReviewer removes a person's email address from the approval requests of all
	// organizations. It is called before the person is purged.
	ForgetReviewer(ctx context.Context, email string) error
	// Purge deletes all of an organization's posts, channels and files, and returns the number of
	// deleted rows. It returns Conflict if a platform call is still in progress.
	Purge(ctx context.Context, org tenancy.OrgID) (int, error)
}

// Deps are the dependencies of New.
type Deps struct {
	DB      *db.DB
	Clock   clock.Clock
	Notices *notice.Queue
	Proofs  *proof.Proofs
	Access  Access
	// Publishing is nil in programs that do not publish posts.
	Publishing Publishing
	Log        *slog.Logger
}

// Deletions deletes and restores accounts and organizations. It is safe for concurrent use.
type Deletions struct {
	cfg        Config
	db         *db.DB
	clock      clock.Clock
	notices    *notice.Queue
	proofs     *proof.Proofs
	access     Access
	publishing Publishing
	log        *slog.Logger

	// purgeOrgs and purgePeople keep the position at which the next Purge continues.
	purgeOrgs   *batch.Sweep[tenancy.OrgID]
	purgePeople *batch.Sweep[tenancy.PersonID]
	// purgeShare is set to the package constant of the same name. Tests can change it.
	purgeShare time.Duration
}

// New returns a Deletions with the given configuration and dependencies.
func New(cfg Config, d Deps) *Deletions {
	s := &Deletions{
		cfg: cfg, db: d.DB, clock: d.Clock, notices: d.Notices, proofs: d.Proofs, access: d.Access,
		publishing: d.Publishing, log: d.Log, purgeShare: purgeShare,
	}
	s.purgeOrgs, s.purgePeople = s.orgSweep(), s.personSweep()
	return s
}
