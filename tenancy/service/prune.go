package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crier/platform/batch"
	"crier/platform/fault"
	"crier/platform/pg"
	tenancystore "crier/tenancy/store"
)

const (
	// prunePage is the number of rows that one statement deletes.
	prunePage = 100
	// pruneRest is the pause after a batch as a multiple of its time.
	pruneRest = 19
)

// PruneSessions deletes the sessions that expired longer than keep ago and returns their number. It uses short
// transactions with pauses between them. A session that the database refuses to delete does not stop the others; the
// first such error is returned at the end. The end of ctx's deadline is no error.
func (a *Accounts) PruneSessions(ctx context.Context, keep time.Duration) (int, error) {
	sweep := batch.Sweep[tenancystore.OldSession]{
		Size: prunePage, PauseFactor: pruneRest, IsItemError: pg.IsRowError,
		Find: func(ctx context.Context, after tenancystore.OldSession, limit int) ([]tenancystore.OldSession, error) {
			return a.store.FindOldSessions(ctx, keep, after, limit)
		},
		Do: func(ctx context.Context, sessions []tenancystore.OldSession) (int, error) {
			return a.store.PruneSessions(ctx, keep, sessions)
		},
	}
	return sweep.Run(ctx)
}

// PruneExpired deletes links, sign-in steps, states, devices and used requests that have expired
// for every process, and returns their number. It uses short transactions with pauses between them,
// and a row that the database refuses to delete does not stop the others: the first such error of
// each kind is returned at the end. It deletes nothing and returns an error when the clock of the
// process is wrong: see checkClock.
func (a *Accounts) PruneExpired(ctx context.Context) (total int, err error) {
	const op = "tenancy.PruneExpired"
	if err := a.checkClock(ctx, op); err != nil {
		return 0, err
	}
	var faults []error
	before := a.clock.Now().Add(-2 * maxSkew) // other processes that use these rows may be as far behind as this one is ahead
	for _, kind := range tenancystore.Expirables() {
		n, err := a.pruneExpired(ctx, kind, before)
		total += n
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", kind, err))
		}
	}
	return total, asFault(op, errors.Join(faults...))
}

func (a *Accounts) pruneExpired(ctx context.Context, kind tenancystore.Expirable, before time.Time) (int, error) {
	sweep := batch.Sweep[tenancystore.ExpiredRow]{
		Size: prunePage, PauseFactor: pruneRest, IsItemError: pg.IsRowError,
		Find: func(
			ctx context.Context, after tenancystore.ExpiredRow, limit int,
		) ([]tenancystore.ExpiredRow, error) {
			return a.store.FindExpired(ctx, kind, before, after, limit)
		},
		Do: func(ctx context.Context, rows []tenancystore.ExpiredRow) (int, error) {
			return a.store.PruneExpired(ctx, kind, before, rows)
		},
	}
	return sweep.Run(ctx)
}

// maxSkew is by how much the clock of a process that purges may differ from that of the database.
const maxSkew = 5 * time.Minute

// databaseTime returns the time of the database, which all processes share. An injected clock is
// always right.
func (a *Accounts) databaseTime(ctx context.Context, op string) (time.Time, error) {
	if a.clockInjected {
		return a.clock.Now(), nil
	}
	now, err := a.store.Now(ctx)
	return now, asFault(op, err)
}

// checkClock returns fault.Unavailable if the clock of the process differs from the database's
// clock by more than maxSkew: rows that look expired may not be.
func (a *Accounts) checkClock(ctx context.Context, op string) error {
	database, err := a.databaseTime(ctx, op)
	if err != nil {
		return err
	}
	skew := a.clock.Now().Sub(database).Round(time.Second)
	if skew.Abs() > maxSkew {
		return fault.Wrap(fault.Unavailable, op, "Nothing is deleted because the clock of the process is wrong.",
			fmt.Errorf("it differs from that of the database by %s", skew))
	}
	return nil
}
