package scheduler

import (
	"context"
	"errors"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// The limits of one call of WriteOccurrences.
const (
	// occurrenceBatch is the maximum number of series processed per call.
	occurrenceBatch = 100
	// occurrencesTime limits the duration of the whole call.
	occurrencesTime = 5 * time.Second
	// occurrenceWait is how long to wait for one of an organization's database connections.
	occurrenceWait = 200 * time.Millisecond
)

// Series gives the scheduler access to repeated posts. The scheduler decides only when a series'
// next occurrence is written.
type Series interface {
	// Ended returns at most limit series in the lease's shards. The current occurrence of each of
	// these series has ended.
	Ended(ctx context.Context, l dispatch.Lease, limit int) ([]publishing.SeriesRef, error)
	// Advance writes a series' next occurrence and reports whether it wrote one. If another
	// transaction has locked the series, it does nothing. It returns Invalid if the time zone is
	// unknown, and it can return pg.ErrOrgBusy or any Postgres error.
	//
	// Advance can be called again after a crash, and can run in several processes at the same time.
	// Each occurrence is written only once.
	Advance(ctx context.Context, org tenancy.OrgID, series publishing.SeriesID) (wrote bool, err error)
	// SetAside postpones a series. reason is the explanation shown in the timeline. It returns
	// pg.ErrOrgBusy or any Postgres error.
	SetAside(ctx context.Context, org tenancy.OrgID, series publishing.SeriesID, reason string) error
}

// WriteOccurrences writes the next occurrence of each series whose current occurrence has ended. It
// processes at most 100 series per call. It returns how many occurrences it wrote, and whether it
// should be called again immediately. It returns an error if the database cannot be reached.
//
// If a series fails, it is set aside for a while, and the other series are not affected. The
// failure is reported in the timeline, in the log and in SeriesSetAside. If all connections of an
// organization are in use, the organization is skipped until the next call.
//
// Nothing is lost in a crash. A series whose current occurrence has ended will be found again, and
// the next occurrence's key prevents it from being inserted twice.
func (s *Sender) WriteOccurrences(ctx context.Context, l dispatch.Lease) (written int, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, occurrencesTime)
	defer cancel()
	ended, err := s.deps.Series.Ended(ctx, l, occurrenceBatch)
	if err != nil {
		return 0, false, err
	}
	ctx = pg.WithOrgWait(ctx, occurrenceWait)
	moved, busy := 0, map[tenancy.OrgID]bool{}
	for _, e := range ended {
		if busy[e.Org] {
			continue
		}
		wrote, err := s.deps.Series.Advance(ctx, e.Org, e.Series)
		if err != nil && ctx.Err() == nil && !pg.IsOrgBusy(err) {
			err = s.setSeriesAside(ctx, e, err)
		}
		switch {
		case err == nil:
			moved++
		case ctx.Err() != nil:
			// Reaching the time limit is not an error. The next call continues with the remaining
			// series.
			return written, moved > 0, nil
		case pg.IsOrgBusy(err):
			busy[e.Org] = true
		default:
			return written, false, err
		}
		if wrote {
			written++
		}
	}
	s.occurrencesWritten.Add(int64(written))
	return written, moved > 0 && len(ended) == occurrenceBatch, nil
}

// OccurrencesWritten returns the number of occurrences written by this Sender since it was created.
func (s *Sender) OccurrencesWritten() int64 { return s.occurrencesWritten.Load() }

// SeriesSetAside returns how many times this Sender has set a series aside because the next
// occurrence could not be written.
func (s *Sender) SeriesSetAside() int64 { return s.seriesSetAside.Load() }

// setSeriesAside postpones a series. It returns an error if the postponement could not be stored.
// In that case, the database cannot be reached or all of the organization's connections are in use.
func (s *Sender) setSeriesAside(ctx context.Context, of publishing.SeriesRef, cause error) error {
	reason := "The next occurrence could not be written; Crier will try again."
	if f := (*fault.Error)(nil); errors.As(cause, &f) && f.Kind == fault.Invalid {
		reason = f.Message
	}
	err := s.deps.Series.SetAside(ctx, of.Org, of.Series, reason)
	if pg.IsAway(err) || pg.IsOrgBusy(err) {
		return err
	}
	s.seriesSetAside.Add(1)
	s.deps.Log.Warn("cannot write the next occurrence of a repeated post; retrying later",
		"org", of.Org, "series", of.Series, "error", errors.Join(cause, err))
	return nil
}
