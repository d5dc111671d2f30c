package service

import (
	"regexp"
	"strings"
	"time"

	"crier/platform/env"
	"crier/platform/secret"
)

// Registrations is who may register.
type Registrations string

// The values of REGISTRATION. A person with an invitation may always register.
const (
	// RegisterFirst allows a registration while there is no organization.
	RegisterFirst Registrations = "first"
	// RegisterInvited allows only people with an invitation.
	RegisterInvited Registrations = "invite"
	// RegisterOpen allows all.
	RegisterOpen Registrations = "open"
)

// Config are the settings of accounts.
type Config struct {
	Registration Registrations `env:"REGISTRATION, default=first" doc:"Who may register: first (until there is an organization), invite, or open."`
	// DeleteGrace is counted from the request.
	DeleteGrace time.Duration `env:"DELETE_GRACE, default=168h" doc:"How long the deletion of an account or organization can be undone."`
	// The next three limit the organizations that one person creates; 0 means no limit. The limits
	// do not apply to the operator.
	OrganizationsPerDay    int `env:"ORGANIZATIONS_PER_DAY, default=5" doc:"How many organizations one person may create in 24 hours; 0: any number."`
	OrganizationsPerPerson int `env:"ORGANIZATIONS_PER_PERSON, default=20" doc:"How many organizations one person may have created in all; 0: any number."`
	// DefaultPlanOrganizations applies only if the default plan has limits.
	DefaultPlanOrganizations int `env:"DEFAULT_PLAN_ORGANIZATIONS, default=3" doc:"How many of them may have the default plan of PLANS_FILE; 0: any number."`
	// EnterpriseSecret is empty on an instance without the enterprise routes.
	EnterpriseSecret secret.Text `env:"ENTERPRISE_SECRET" doc:"Key of signed /enterprise requests, 32 bytes or more; empty: no such routes."`

	// BaseURL and FrontendURL are the addresses of the service and of the dashboard, without a slash at the end. They are
	// no variables of this package.
	BaseURL     string
	FrontendURL string
}

const (
	minEnterpriseSecret = 32
	maxDeleteGrace      = 365 * 24 * time.Hour
	maxOrganizations    = 1000
)

// Validate returns every fault of the configuration, joined; errors.As finds an env.Fault in it.
func (c Config) Validate() error {
	var faults env.Faults
	if c.Registration != RegisterFirst && c.Registration != RegisterInvited && c.Registration != RegisterOpen {
		faults.Add("REGISTRATION", "must be first, invite or open")
	}
	faults.Duration("DELETE_GRACE", c.DeleteGrace, 0, maxDeleteGrace)
	faults.Number("ORGANIZATIONS_PER_DAY", int64(c.OrganizationsPerDay), 0, maxOrganizations)
	faults.Number("ORGANIZATIONS_PER_PERSON", int64(c.OrganizationsPerPerson), 0, maxOrganizations)
	faults.Number("DEFAULT_PLAN_ORGANIZATIONS", int64(c.DefaultPlanOrganizations), 0, maxOrganizations)
	if n := len(c.EnterpriseSecret); n > 0 && n < minEnterpriseSecret {
		faults.Add("ENTERPRISE_SECRET", "must have at least 32 bytes")
	}
	return faults.Err()
}

// Retention configures how long rows that are no longer needed are kept.
type Retention struct {
	// Sessions is counted from the expiry of a session. 0 means forever.
	Sessions time.Duration `env:"SESSION_RETENTION, default=168h" doc:"How long an expired session is kept; 0s: forever."`
}

const maxRetention = 10 * 365 * 24 * time.Hour

// Validate returns an env.Fault when a duration is negative or longer than ten years.
func (r Retention) Validate() error {
	var faults env.Faults
	faults.Duration("SESSION_RETENTION", r.Sessions, 0, maxRetention)
	return faults.Err()
}

// host returns the host of the service without its port, which mails name.
func (c Config) host() string {
	return portForm.ReplaceAllString(strings.TrimPrefix(strings.TrimPrefix(c.BaseURL, "https://"), "http://"), "")
}

var portForm = regexp.MustCompile(`[:/].*$`)
