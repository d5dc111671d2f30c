// Package organization implements organizations: creating, choosing and changing them, what they
// require of members, and their audit logs.
package organization

import (
	"crier/platform/clock"
	"crier/platform/limit"
	"crier/tenancy"
	"crier/tenancy/db"
)

// Plans reports which plans organizations have.
type Plans interface {
	// OnDefault returns the name of the default plan and how many of the organizations have it. The
	// number is 0 if the plan has no limits.
	OnDefault(orgs []tenancy.OrgID) (plan string, n int)
}

// Deps are the dependencies of New.
type Deps struct {
	DB    *db.DB
	Clock clock.Clock
	// Plans is nil on an instance without limits.
	Plans Plans
}

// Organizations are the use cases of organizations. They are safe for concurrent use.
type Organizations struct {
	cfg   Config
	db    *db.DB
	clock clock.Clock
	plans Plans
	// audits limits queries of audit logs, fairly by organization: one can read a whole log.
	audits *limit.Fair[tenancy.OrgID]
}

// New returns Organizations.
func New(cfg Config, d Deps) *Organizations {
	return &Organizations{
		cfg: cfg, db: d.DB, clock: d.Clock, plans: d.Plans, audits: limit.NewFair[tenancy.OrgID](auditsAtOnce, auditsWaiting),
	}
}
