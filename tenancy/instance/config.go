package instance

import (
	"time"

	"crier/platform/env"
)

// Retention configures how long rows that are no longer needed are kept.
type Retention struct {
	// Sessions is counted from a session's expiry. 0 means forever.
	Sessions time.Duration `env:"SESSION_RETENTION, default=168h" doc:"How long an expired session is kept; 0s: forever."`
}

const maxRetention = 10 * 365 * 24 * time.Hour

// Validate returns an env.Fault if a duration is negative or longer than ten years.
func (r Retention) Validate() error {
	var faults env.Faults
	faults.Duration("SESSION_RETENTION", r.Sessions, 0, maxRetention)
	return faults.Err()
}
