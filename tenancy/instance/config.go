package instance

import (
	"time"

	"crier/platform/env"
)

// Retention configures how long rows are kept after they are no longer needed.
type Retention struct {
	// Sessions is measured from a session's expiry. 0 means forever.
	Sessions time.Duration `env:"SESSION_RETENTION, default=168h" doc:"How long an expired session is kept; 0s: forever."`
}

const maxRetention = 10 * 365 * 24 * time.Hour

// Validate returns an env.Fault if a duration is negative or longer than ten years.
func (r Retention) Validate() error {
	var faults env.Faults
	faults.Duration("SESSION_RETENTION", r.Sessions, 0, maxRetention)
	return faults.Err()
}
