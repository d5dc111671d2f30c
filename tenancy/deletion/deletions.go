// Package deletion implements the end of accounts and organizations: requesting it, undoing it, and
// the purge that follows.
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

// Publishing ends the publishing of organizations and deletes their data.
type Publishing interface {
	// Stop ends the publishing of an organization: once it returns, no further call to a platform
	// can begin.
	Stop(ctx context.Context, org tenancy.OrgID, by string) error
	// ForgetReviewer removes the address of a person who is being purged from the approval requests
	// of all organizations.
	ForgetReviewer(ctx context.Context, email string) error
	// Purge deletes all posts, channels and files of an organization and returns how many rows it
	// deleted. It returns Conflict if a call to a platform is still in progress.
	Purge(ctx context.Context, org tenancy.OrgID) (int, error)
}

// Deps are the dependencies of New.
type Deps struct {
	DB      *db.DB
	Clock   clock.Clock
	Notices *notice.Queue
	Proofs  *proof.Proofs
	Access  Access
	// Publishing is nil in programs that publish nothing.
	Publishing Publishing
	Log        *slog.Logger
}

// Deletions are the use cases of deleting and restoring. They are safe for concurrent use.
type Deletions struct {
	cfg        Config
	db         *db.DB
	clock      clock.Clock
	notices    *notice.Queue
	proofs     *proof.Proofs
	access     Access
	publishing Publishing
	log        *slog.Logger

	// purgeOrgs and purgePeople remember where the next Purge continues.
	purgeOrgs   *batch.Sweep[tenancy.OrgID]
	purgePeople *batch.Sweep[tenancy.PersonID]
	// purgeShare is the constant of the same name, except in tests.
	purgeShare time.Duration
}

// New returns Deletions.
func New(cfg Config, d Deps) *Deletions {
	s := &Deletions{
		cfg: cfg, db: d.DB, clock: d.Clock, notices: d.Notices, proofs: d.Proofs, access: d.Access,
		publishing: d.Publishing, log: d.Log, purgeShare: purgeShare,
	}
	s.purgeOrgs, s.purgePeople = s.orgSweep(), s.personSweep()
	return s
}
