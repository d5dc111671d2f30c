package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crier/platform/batch"
	"crier/platform/pg"
	"crier/tenancy/db"
	instancestore "crier/tenancy/instance/store"
)

const (
	// prunePage is the maximum number of rows that one statement deletes.
	prunePage = 100
	// pruneRest is the pause after a batch, as a multiple of the batch's duration.
	pruneRest = 19
)

// PruneSessions deletes the sessions that expired more than keep ago and returns the number of
// deleted sessions. It uses short transactions with pauses between them. If a session cannot be
// deleted, PruneSessions continues with the others and returns the first such error at the end. It
// is not an error if ctx reaches its deadline.
func (s *Instance) PruneSessions(ctx context.Context, keep time.Duration) (int, error) {
	sweep := batch.Sweep[instancestore.OldSession]{
		Size: prunePage, PauseFactor: pruneRest, IsItemError: pg.IsRowError,
		Find: func(ctx context.Context, after instancestore.OldSession, limit int) ([]instancestore.OldSession, error) {
			return instancestore.FindOldSessions(ctx, s.db, keep, after, limit)
		},
		Do: func(ctx context.Context, sessions []instancestore.OldSession) (int, error) {
			return instancestore.PruneSessions(ctx, s.db, keep, sessions)
		},
	}
	return sweep.Run(ctx)
}

// PruneExpired deletes expired rows, such as links, sign-in steps, devices and used requests, and
// returns the number of deleted rows. It deletes a row only if the row has expired according to
// every process's clock. It uses short transactions with pauses between them. If a row cannot be
// deleted, PruneExpired continues with the others. At the end, it returns the first such error for
// each kind of row.
//
// PruneExpired deletes nothing and returns an error if the process's clock is wrong; see
// CheckClock.
func (s *Instance) PruneExpired(ctx context.Context) (total int, err error) {
	const op = "tenancy.PruneExpired"
	if err := s.db.CheckClock(ctx, op); err != nil {
		return 0, err
	}
	var faults []error
	// This process's clock may be MaxSkew ahead of the database's clock, and the clock of another
	// process that uses these rows may be MaxSkew behind.
	before := s.clock.Now().Add(-2 * db.MaxSkew)
	for _, kind := range instancestore.Expirables() {
		n, err := s.pruneExpired(ctx, kind, before)
		total += n
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", kind, err))
		}
	}
	return total, db.Fault(op, errors.Join(faults...))
}

func (s *Instance) pruneExpired(ctx context.Context, kind instancestore.Expirable, before time.Time) (int, error) {
	sweep := batch.Sweep[instancestore.ExpiredRow]{
		Size: prunePage, PauseFactor: pruneRest, IsItemError: pg.IsRowError,
		Find: func(
			ctx context.Context, after instancestore.ExpiredRow, limit int,
		) ([]instancestore.ExpiredRow, error) {
			return instancestore.FindExpired(ctx, s.db, kind, before, after, limit)
		},
		Do: func(ctx context.Context, rows []instancestore.ExpiredRow) (int, error) {
			return instancestore.PruneExpired(ctx, s.db, kind, before, rows)
		},
	}
	return sweep.Run(ctx)
}
