// Package organization creates and changes organizations, lets people choose between their
// organizations, sets requirements for members, and reads and writes the audit logs.
package organization

import (
	"crier/platform/clock"
	"crier/platform/limit"
	"crier/tenancy"
	"crier/tenancy/db"
)

// Plans reports which plans organizations have.
type Plans interface {
	// OnDefault returns the default plan's name and how many of the given organizations are on that
	// plan. The number is 0 if the plan has no limits.
	OnDefault(orgs []tenancy.OrgID) (plan string, n int)
}

// Deps holds the dependencies of New.
type Deps struct {
	DB    *db.DB
	Clock clock.Clock
	// Plans is nil on an instance without limits.
	Plans Plans
}

// Organizations manages organizations and their audit logs. It is safe for concurrent use.
type Organizations struct {
	cfg   Config
	db    *db.DB
	clock clock.Clock
	plans Plans
	// audits limits concurrent audit log queries, because a single query can read a whole log. It
	// shares the available slots fairly among organizations.
	audits *limit.Fair[tenancy.OrgID]
}

// New returns a new Organizations.
func New(cfg Config, d Deps) *Organizations {
	return &Organizations{
		cfg: cfg, db: d.DB, clock: d.Clock, plans: d.Plans,
		audits: limit.NewFair[tenancy.OrgID](auditsAtOnce, auditsWaiting),
	}
}
