package organization

import "crier/platform/env"

// Config limits how many organizations one person can create; 0 means no limit. The limits do not
// apply to the operator.
type Config struct {
	OrganizationsPerDay    int `env:"ORGANIZATIONS_PER_DAY, default=5" doc:"Maximum number of organizations that a person can create in 24 hours; 0: no limit."`
	OrganizationsPerPerson int `env:"ORGANIZATIONS_PER_PERSON, default=20" doc:"Maximum number of organizations that a person can create in total; 0: no limit."`
	// DefaultPlanOrganizations applies only if the default plan has limits.
	DefaultPlanOrganizations int `env:"DEFAULT_PLAN_ORGANIZATIONS, default=3" doc:"Maximum number of a person's organizations on the default plan, if that plan has limits; 0: no limit."`
}

const maxOrganizations = 1000

// Validate checks the configuration and returns all errors joined. errors.As finds an env.Fault in
// the result.
func (c Config) Validate() error {
	var faults env.Faults
	faults.Number("ORGANIZATIONS_PER_DAY", int64(c.OrganizationsPerDay), 0, maxOrganizations)
	faults.Number("ORGANIZATIONS_PER_PERSON", int64(c.OrganizationsPerPerson), 0, maxOrganizations)
	faults.Number("DEFAULT_PLAN_ORGANIZATIONS", int64(c.DefaultPlanOrganizations), 0, maxOrganizations)
	return faults.Err()
}
