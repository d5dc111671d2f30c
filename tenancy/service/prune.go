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
	// Sessions is how long a session is kept after it has expired. 0 means forever.
	Sessions time.Duration `env:"SESSION_RETENTION, default=168h" doc:"How long a session is kept after its end; 0s: for ever."`
}

// Validate returns an error when a duration is negative.
func (r Retention) Validate() error {
	if r.Sessions < 0 {
		return env.Fault{Name: "SESSION_RETENTION", Message: "must be a duration, zero or more, such as 168h."}
	}
	return nil
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
