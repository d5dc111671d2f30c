package service

import (
	"context"
	"time"

	"crier/platform/batch"
	"crier/platform/env"
	"crier/platform/pg"
	tenancystore "crier/tenancy/store"
)

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

// PruneSessions deletes the sessions that expired longer than keep ago and returns their number. It uses short
// transactions with pauses between them. A session that the database refuses to delete does not stop the others; the
// first such error is returned at the end. The end of ctx's deadline is no error.
func (a *Accounts) PruneSessions(ctx context.Context, keep time.Duration) (int, error) {
	sweep := batch.Sweep[tenancystore.OldSession]{
		Size: 100, PauseFactor: 19, IsItemError: pg.IsRowError,
		Find: func(ctx context.Context, after tenancystore.OldSession, limit int) ([]tenancystore.OldSession, error) {
			return a.store.FindOldSessions(ctx, keep, after, limit)
		},
		Do: func(ctx context.Context, sessions []tenancystore.OldSession) (int, error) {
			return a.store.PruneSessions(ctx, keep, sessions)
		},
	}
	return sweep.Run(ctx)
}
