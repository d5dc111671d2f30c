package deletion

import (
	"time"

	"crier/platform/env"
)

// Config configures deletions.
type Config struct {
	// DeleteGrace is measured from the time at which deletion was requested.
	DeleteGrace time.Duration `env:"DELETE_GRACE, default=168h" doc:"How long the deletion of an account or organization can be undone."`
}

const maxDeleteGrace = 365 * 24 * time.Hour

// Validate returns an env.Fault if the duration is negative or longer than a year.
func (c Config) Validate() error {
	var faults env.Faults
	faults.Duration("DELETE_GRACE", c.DeleteGrace, 0, maxDeleteGrace)
	return faults.Err()
}
