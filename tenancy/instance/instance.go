// Package instance implements operator commands and the maintenance that the service performs
// across organizations. It manages instance administrators and instance events, suspends
// organizations, stops and resumes publishing, and deletes expired rows.
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
	// EndActingOf ends all impersonations by an administrator's sessions and records the end of
	// each.
	EndActingOf(ctx context.Context, tx *db.GateTx, admin tenancy.Person) error
}

// Keys is this process's cache of API keys.
type Keys interface {
	// ForgetOrgs removes the organizations' keys from the cache.
	ForgetOrgs(orgs ...tenancy.OrgID)
}

// Publishing controls whether organizations can publish.
type Publishing interface {
	// Stop stops an organization from publishing. Once Stop has returned, no further platform call
	// can begin.
	Stop(ctx context.Context, org tenancy.OrgID, by string) error
	// Resume undoes Stop. Posts that became due in the meantime are marked as missed, unless
	// catchUp is set.
	Resume(ctx context.Context, org tenancy.OrgID, by string, catchUp bool) error
	// Stopped returns the given organizations that are currently stopped; see Stop.
	Stopped(ctx context.Context, orgs []tenancy.OrgID) ([]tenancy.OrgID, error)
}

// Deps are the dependencies of New.
type Deps struct {
	DB       *db.DB
	Clock    clock.Clock
	Sessions Sessions
	Keys     Keys
	// Publishing is nil in programs that do not publish posts.
	Publishing Publishing
	Log        *slog.Logger
}

// Instance implements operator commands and the service's own maintenance. It is safe for
// concurrent use.
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
