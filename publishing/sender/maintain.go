package sender

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"crier/platform/batch"
	"crier/platform/clock"
	"crier/platform/pg"
	"crier/publishing"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

const (
	asideFor  = 10 * time.Minute // how long a row that Postgres refuses is left out
	maxAside  = 1000             // rows that are left out at most; more are tried again
	maxRounds = 20               // statements of one kind in one call of Maintain
	ageEvery  = time.Minute      // how often stuck and orphaned posts are looked for: their limits are hours, and every waiting part is read
	lateEvery = 15 * time.Second // how often missed posts are looked for while there are none, or a hundredth of MAX_LATE
)

// asides are the posts that Postgres refuses to change; they are left out for a while, so that the others go on.
type asides struct {
	count atomic.Int64 // ever
	mu    sync.Mutex
	until map[publishing.PostID]time.Time
}

// SetAsides is how many rows were set aside since the start because Postgres refused them.
func (s *Sender) SetAsides() int64 { return s.aside.count.Load() }

func (a *asides) add(post publishing.PostID, until time.Time) {
	a.count.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.until == nil {
		a.until = map[publishing.PostID]time.Time{}
	}
	if len(a.until) < maxAside {
		a.until[post] = until
	}
}

// current lists the posts that are left out now.
func (a *asides) current(now time.Time) []publishing.PostID {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.until, func(_ publishing.PostID, until time.Time) bool { return now.After(until) })
	return slices.Collect(maps.Keys(a.until))
}

// refusedRow sets a post aside that Postgres refuses to change, and writes the reason into its timeline.
func (s *Sender) refusedRow(ctx context.Context, what string) func(publishing.PostID, error) {
	return func(post publishing.PostID, cause error) {
		s.aside.add(post, s.deps.Clock.Now().Add(asideFor))
		err := s.store.SetAside(ctx, post, s.deps.Node, "The database refuses this post ("+what+"): "+pg.Reason(cause))
		s.deps.Log.Error("the database refuses a post; it is set aside", "post", post, "what", what, "error", errors.Join(cause, err))
	}
}

// Maintained is what a call of Maintain changed.
type Maintained struct {
	Expired int  // posts that were given up: too late, stuck or orphaned
	Reaped  int  // claims that ended with their worker
	More    bool // there is more of the same: call it again soon
}

// Maintain gives up posts of the lease's shards that are too late or stand in a state for too long, and ends the
// claims of dead workers. One kind of work that fails does not keep the others from being done, nor one post the
// others of its kind.
func (s *Sender) Maintain(ctx context.Context, l publishing.Lease) (m Maintained, err error) {
	type step struct {
		kind  publishingstore.Upkeep
		after time.Duration
		total *int
	}
	steps := []step{{publishingstore.UpkeepReap, 0, &m.Reaped}}
	now := clock.Boot()
	if over(s.noLate.Load(), now, min(lateEvery, s.cfg.MaxLate/100)) {
		steps = append(steps, step{publishingstore.UpkeepExpire, s.cfg.MaxLate, &m.Expired})
	}
	if over(s.aged.Load(), now, ageEvery) {
		s.aged.Store(int64(now))
		steps = append(steps, step{publishingstore.UpkeepStuck, s.cfg.SendFor, &m.Expired},
			step{publishingstore.UpkeepOrphans, s.cfg.WaitFor, &m.Expired})
	}
	for _, x := range steps {
		n, found, failed := s.upkeep(ctx, l, x.kind, x.after)
		*x.total += n
		m.More = m.More || found == maxRounds*publishingstore.MaxUpkeep
		if x.kind == publishingstore.UpkeepExpire && found == 0 && failed == nil {
			s.noLate.Store(int64(now))
		}
		err = errors.Join(err, failed)
	}
	return m, err
}

// over tells whether it is time for something that was last done at last, 0 for never; both by clock.Boot.
func over(last int64, now, rest time.Duration) bool {
	return last == 0 || now-time.Duration(last) >= rest
}

// upkeep does one kind of work until there is none left or it has sent its share of statements. It returns how many
// posts it changed, and how many it found: those that another transaction has locked are left to the next call.
func (s *Sender) upkeep(
	ctx context.Context, l publishing.Lease, kind publishingstore.Upkeep, after time.Duration,
) (changed, found int, err error) {
	what := "it cannot be given up"
	if kind == publishingstore.UpkeepReap {
		what = "its claim cannot be ended"
	}
	for range maxRounds {
		ids, err := s.store.Find(ctx, l, kind, after, s.aside.current(s.deps.Clock.Now()), publishingstore.MaxUpkeep)
		if err != nil || len(ids) == 0 {
			return changed, found, err
		}
		found += len(ids)
		_, err = batch.Isolate(ids, func(some []publishing.PostID) error {
			n, err := s.store.Do(ctx, kind, some, after, s.deps.Node)
			changed += n
			return err
		}, func(err error) bool { return pg.IsRefused(err) || pg.IsLocked(err) }, func(post publishing.PostID, cause error) {
			if !pg.IsLocked(cause) {
				s.refusedRow(ctx, what)(post, cause)
			}
		})
		if err != nil || len(ids) < publishingstore.MaxUpkeep {
			return changed, found, err
		}
	}
	return changed, found, nil
}

// Sweep finds every organization of the lease with something due within the horizon.
func (s *Sender) Sweep(ctx context.Context, l publishing.Lease, horizon time.Duration) (map[tenancy.OrgID]time.Time, time.Time, error) {
	return s.store.Sweep(ctx, l, horizon, s.cfg.MaxLate)
}
