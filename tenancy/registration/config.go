package registration

import (
	"crier/platform/env"
	"crier/platform/secret"
)

// Policy says who may register.
type Policy string

// The values of REGISTRATION. A person with an invitation can always register.
const (
	// RegisterFirst allows registration until an organization exists.
	RegisterFirst Policy = "first"
	// RegisterInvited allows registration only with an invitation.
	RegisterInvited Policy = "invite"
	// RegisterOpen allows anybody to register.
	RegisterOpen Policy = "open"
)

// Config holds the registration settings.
type Config struct {
	Registration Policy `env:"REGISTRATION, default=first" doc:"Who can register: first (anyone, until the first organization exists), invite (only with an invitation), or open (anyone)."`
}

// Validate returns an env.Fault if the policy is unknown.
func (c Config) Validate() error {
	var faults env.Faults
	if c.Registration != RegisterFirst && c.Registration != RegisterInvited && c.Registration != RegisterOpen {
		faults.Add("REGISTRATION", "must be first, invite or open")
	}
	return faults.Err()
}

// EnterpriseConfig holds the settings for signed requests.
type EnterpriseConfig struct {
	// EnterpriseSecret is empty on an instance without the enterprise routes.
	EnterpriseSecret secret.Text `env:"ENTERPRISE_SECRET" doc:"Key that signs /enterprise requests; at least 32 bytes."`
}

const minEnterpriseSecret = 32

// Validate returns an env.Fault if the secret is too short.
func (c EnterpriseConfig) Validate() error {
	var faults env.Faults
	if n := len(c.EnterpriseSecret); n > 0 && n < minEnterpriseSecret {
		faults.Add("ENTERPRISE_SECRET", "must have at least 32 bytes")
	}
	return faults.Err()
}
