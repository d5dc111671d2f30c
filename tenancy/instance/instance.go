// Package instance implements what the operator and the service itself do across organizations:
// administrators of the instance, its events, suspending organizations, whether they publish, and
// deleting what has expired.
package instance

import (
	"context"
	"log/slog"

	"crier/platform/clock"
	"crier/tenancy"
	"crier/tenancy/db"
)

// Sessions ends what administrators of the instance do as other people.
type Sessions interface {
	// EndActingOf ends what all sessions of an administrator act as, and records that.
	EndActingOf(ctx context.Context, tx *db.GateTx, admin tenancy.Person) error
}

// Keys are the cached API keys of this process.
type Keys interface {
	// ForgetOrgs removes the keys of organizations from the cache.
	ForgetOrgs(orgs ...tenancy.OrgID)
}

// Publishing stops and resumes the publishing of organizations.
type Publishing interface {
	// Stop ends the publishing of an organization: when it returns, no call to a platform can
	// begin.
	Stop(ctx context.Context, org tenancy.OrgID, by string) error
	// Resume undoes Stop. What fell due meanwhile is given up as missed unless catchUp.
	Resume(ctx context.Context, org tenancy.OrgID, by string, catchUp bool) error
	// Stopped returns those of the organizations that Stop has stopped.
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
