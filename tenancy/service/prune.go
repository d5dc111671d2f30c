package service

import (
	"context"
	"time"

	"crier/platform/batch"
	"crier/platform/pg"
	tenancystore "crier/tenancy/store"
)

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

// prunePage is the number of rows of each kind that PruneExpired deletes in one transaction.
const prunePage = 500

// PruneExpired deletes links, steps of sign-ins, states and devices that are over, and returns their number. A kind of
// which rows cannot be deleted does not stop the others; its error is returned at the end.
func (a *Accounts) PruneExpired(ctx context.Context) (total int, err error) {
	for {
		n, err := a.store.PruneExpired(ctx, a.clock.Now(), prunePage)
		total += n
		if n == 0 || ctx.Err() != nil {
			return total, pg.Fault("tenancy.PruneExpired", err)
		}
	}
}
