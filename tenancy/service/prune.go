package service

import (
	"context"
	"time"

	"crier/platform/batch"
	"crier/platform/env"
	"crier/platform/pg"
	tenancystore "crier/tenancy/store"
)

// Retention says how long what is not needed any more is kept; 0 is for ever.
type Retention struct {
	Sessions time.Duration `env:"KEEP_SESSIONS, default=168h" doc:"How long a session is kept after its end; 0s: for ever."`
}

// Validate refuses a negative time.
func (r Retention) Validate() error {
	if r.Sessions < 0 {
		return env.Fault{Name: "KEEP_SESSIONS", Message: "must be a duration, zero or more, such as 168h."}
	}
	return nil
}

// PruneSessions deletes the sessions that ended longer ago than keep, in short transactions with pauses between, and
// returns how many. A session that the database refuses to delete stops no other; the first such error is returned
// when all have been tried. That the deadline of ctx has passed is no error.
func (a *Accounts) PruneSessions(ctx context.Context, keep time.Duration) (int, error) {
	sweep := batch.Sweep[tenancystore.OldSession]{
		Size: 100, Rest: 19, Blame: pg.IsOfRows,
		Find: func(ctx context.Context, after tenancystore.OldSession, limit int) ([]tenancystore.OldSession, error) {
			return a.store.FindOldSessions(ctx, keep, after, limit)
		},
		Do: func(ctx context.Context, sessions []tenancystore.OldSession) (int, error) {
			return a.store.PruneSessions(ctx, keep, sessions)
		},
	}
	return sweep.Run(ctx)
}
