package sender

import (
	"context"
	"errors"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// The bounds of one call of WriteOccurrences.
const (
	occurrenceBatch = 100                    // series
	occurrencesTime = 5 * time.Second        // for all of them
	occurrenceWait  = 200 * time.Millisecond // for connections of one organization
)

// WriteOccurrences writes the next occurrence of each repeated post whose current one has ended, at most 100 in a
// call, and returns how many it wrote and whether there may be more to do at once. A series that fails is set aside
// for a while, with a line in its timeline, in the log and in the count of SeriesSetAside; it stops no other. An
// organization whose connections are all in use is passed over until the next call. An error means that the database
// could not be asked.
//
// A process that dies anywhere loses nothing: what has ended and has no successor is found again, and the key of the
// occurrence lets it be written once.
func (s *Sender) WriteOccurrences(ctx context.Context, l publishing.Lease) (written int, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, occurrencesTime)
	defer cancel()
	ended, err := s.store.EndedSeries(ctx, l, occurrenceBatch)
	if err != nil {
		return 0, false, err
	}
	ctx = pg.WithOrgWait(ctx, occurrenceWait)
	moved, busy := 0, map[tenancy.OrgID]bool{}
	for _, e := range ended {
		if busy[e.Org] {
			continue
		}
		wrote, err := s.store.Advance(ctx, e.Org, e.Series, false)
		if err != nil && ctx.Err() == nil && !pg.IsOrgBusy(err) {
			err = s.setAside(ctx, e, err)
		}
		switch {
		case err == nil:
			moved++
		case ctx.Err() != nil:
			return written, moved > 0, nil // out of time, not out of order: the next call goes on
		case pg.IsOrgBusy(err):
			busy[e.Org] = true
		default:
			return written, false, err
		}
		if wrote {
			written++
		}
	}
	s.occurrences.Add(int64(written))
	return written, moved > 0 && len(ended) == occurrenceBatch, nil
}

// OccurrencesWritten counts the occurrences that WriteOccurrences has written.
func (s *Sender) OccurrencesWritten() int64 { return s.occurrences.Load() }

// SeriesSetAside counts how often a repeated post could not be continued and was left for later.
func (s *Sender) SeriesSetAside() int64 { return s.seriesAside.Load() }

// setAside leaves a series for later; an error means that not even this could be stored: the database is away, or the
// organization's connections are all in use.
func (s *Sender) setAside(ctx context.Context, of publishingstore.SeriesRef, cause error) error {
	reason := "The next occurrence could not be written; it is tried again."
	if f := (*fault.Error)(nil); errors.As(cause, &f) && f.Kind == fault.Invalid {
		reason = f.Message
	}
	err := s.store.SetAsideSeries(ctx, of.Org, of.Series, reason)
	if pg.IsAway(err) || pg.IsOrgBusy(err) {
		return err
	}
	s.seriesAside.Add(1)
	s.deps.Log.Warn("the next occurrence of a repeated post cannot be written now; it is tried again later",
		"org", of.Org, "series", of.Series, "error", errors.Join(cause, err))
	return nil
}
