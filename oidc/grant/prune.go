package grant

import (
	"context"
	"errors"
	"fmt"

	grantstore "crier/oidc/grant/store"
	"crier/platform/batch"
	"crier/platform/pg"
	"crier/tenancy/db"
)

const (
	// prunePage is the maximum number of rows that one statement deletes or examines.
	prunePage = 500
	// pruneRest is the pause after a batch, as a multiple of the batch's duration.
	pruneRest = 9
)

// Prune deletes expired tokens, codes, post counts and device log-ins. It then deletes families
// without tokens, and grants that have neither families nor codes. It returns the number of deleted
// rows.
//
// Prune deletes nothing and returns an error if the process's clock is wrong; see db.CheckClock.
func (s *Grants) Prune(ctx context.Context) (total int, err error) {
	const op = "oidc.Prune"
	if err := s.db.CheckClock(ctx, op); err != nil {
		return 0, err
	}
	var faults []error
	// This process's clock may be MaxSkew ahead of the database's clock, and the clock of a process
	// that uses the rows may be MaxSkew behind it.
	before := s.clock.Now().Add(-2 * db.MaxSkew)
	for _, kind := range grantstore.Expirables() {
		for {
			n, err := grantstore.PruneExpired(ctx, s.db, kind, before, prunePage)
			total += n
			if err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", kind, err))
			}
			if err != nil || n < prunePage {
				break
			}
		}
	}
	for _, kind := range []grantstore.Empty{grantstore.EmptyFamilies, grantstore.EmptyGrants} {
		n, err := s.pruneEmpty(ctx, kind)
		total += n
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", kind, err))
		}
	}
	return total, db.Fault(op, errors.Join(faults...))
}

func (s *Grants) pruneEmpty(ctx context.Context, kind grantstore.Empty) (int, error) {
	sweep := batch.Sweep[grantstore.OldRow]{
		Size: prunePage, PauseFactor: pruneRest, IsItemError: pg.IsRowError,
		Find: func(ctx context.Context, after grantstore.OldRow, limit int) ([]grantstore.OldRow, error) {
			return grantstore.FindOld(ctx, s.db, kind, after, limit)
		},
		Do: func(ctx context.Context, rows []grantstore.OldRow) (int, error) {
			return grantstore.PruneEmpty(ctx, s.db, kind, rows)
		},
	}
	return sweep.Run(ctx)
}
