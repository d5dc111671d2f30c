// Package instance implements what the operator and the service itself do across organizations:
// administrators and events of the instance, suspending organizations, stopping and resuming their
// publishing, and deleting what has expired.
package instance

import (
	"context"
	"log/slog"

	"crier/platform/clock"
	"crier/tenancy"
	"crier/tenancy/db"
)

// Sessions ends impersonations.
type Sessions interface {
	// EndActingOf ends, and records the end of, every impersonation by an administrator's sessions.
	EndActingOf(ctx context.Context, tx *db.GateTx, admin tenancy.Person) error
}

// Keys are the cached API keys of this process.
type Keys interface {
	// ForgetOrgs removes the keys of organizations from the cache.
	ForgetOrgs(orgs ...tenancy.OrgID)
}

// Publishing stops and resumes the publishing of organizations.
type Publishing interface {
	// Stop ends the publishing of an organization: once it returns, no further call to a platform
	// can begin.
	Stop(ctx context.Context, org tenancy.OrgID, by string) error
	// Resume undoes Stop. Posts that fell due in the meantime are given up as missed, unless
	// catchUp is set.
	Resume(ctx context.Context, org tenancy.OrgID, by string, catchUp bool) error
	// Stopped returns which of the organizations are stopped by Stop.
	Stopped(ctx context.Context, orgs []tenancy.OrgID) ([]tenancy.OrgID, error)
}

// Deps are the dependencies of New.
type Deps struct {
	DB       *db.DB
	Clock    clock.Clock
	Sessions Sessions
	Keys     Keys
	// Publishing is nil in programs that publish nothing.
	Publishing Publishing
	Log        *slog.Logger
}

// Instance are the use cases of the operator. They are safe for concurrent use.
type Instance struct {
	db         *db.DB
	clock      clock.Clock
	sessions   Sessions
	keys       Keys
	publishing Publishing
	log        *slog.Logger
}

// New returns an Instance.
func New(d Deps) *Instance {
	return &Instance{
		db: d.DB, clock: d.Clock, sessions: d.Sessions, keys: d.Keys, publishing: d.Publishing, log: d.Log,
	}
}
