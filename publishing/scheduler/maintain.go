package scheduler

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
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tenancy"
)

const (
	// setAsideFor is how long to skip a row that Postgres rejects. maxSetAside is the maximum
	// number of rows to skip at the same time.
	setAsideFor = 10 * time.Minute
	maxSetAside = 1000
	// maxRounds is the maximum number of statements of each kind in one call to Maintain.
	maxRounds = 20
	// ageSearchEvery is the interval between searches for stuck and orphaned posts. The searches
	// are infrequent because the age limits are several hours, and because each search reads all
	// waiting parts.
	ageSearchEvery = time.Minute
	// expireEvery is the longest wait after a search for missed posts that found none.
	expireEvery = 15 * time.Second
)

// setAsidePosts holds the posts whose changes Postgres rejects. These posts are skipped for a
// while, so that they do not block other posts. A setAsidePosts is safe for concurrent use.
type setAsidePosts struct {
	count atomic.Int64 // since the process started
	mu    sync.Mutex   // protects until
	until map[publishing.PostID]time.Time
}

// SetAsides returns how many rows have been set aside since the process started. A row is set aside
// when Postgres rejects a change to it.
func (s *Sender) SetAsides() int64 { return s.setAsides.count.Load() }

func (a *setAsidePosts) add(post publishing.PostID, until time.Time) {
	a.count.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.until == nil {
		a.until = map[publishing.PostID]time.Time{}
	}
	if len(a.until) < maxSetAside {
		a.until[post] = until
	}
}

// current returns the posts to skip at the given time, and removes the posts that no longer need to
// be skipped.
func (a *setAsidePosts) current(now time.Time) []publishing.PostID {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.until, func(_ publishing.PostID, until time.Time) bool { return now.After(until) })
	return slices.Collect(maps.Keys(a.until))
}

// setPostAside returns a function that sets a post aside after Postgres has rejected a change to
// the post. The function also adds the reason to the post's timeline.
func (s *Sender) setPostAside(ctx context.Context, what string) func(publishing.PostID, error) {
	return func(post publishing.PostID, cause error) {
		s.setAsides.add(post, s.deps.Clock.Now().Add(setAsideFor))
		err := schedulerstore.SetAside(
			ctx, s.db, post, s.db.Node, "The database refuses this post ("+what+"): "+pg.Reason(cause),
		)
		s.deps.Log.Error("the database refuses a post; it is set aside",
			"post", post, "what", what, "error", errors.Join(cause, err))
	}
}

// Maintained counts the changes made by a call to Maintain.
type Maintained struct {
	// Expired is the number of posts that were abandoned because they were late, stuck or orphaned.
	Expired int
	// Reaped is the number of claims that were ended. A claim is ended if it has expired or its
	// process no longer exists.
	Reaped int
	// More is set if Maintain should be called again soon.
	More bool
}

// Maintain works on the posts in the lease's shards. It abandons posts that are more than
// MAX_LATENESS late, stuck in preparation, or orphaned. It ends claims that have expired or whose
// process no longer exists.
//
// If one kind of work fails, Maintain still does the other kinds. If Postgres rejects the change to
// one post, the other posts are not affected. Maintain returns all errors, joined.
func (s *Sender) Maintain(ctx context.Context, l dispatch.Lease) (m Maintained, err error) {
	type step struct {
		kind  schedulerstore.Upkeep
		after time.Duration
		total *int
	}
	steps := []step{{kind: schedulerstore.UpkeepReap, total: &m.Reaped}}
	now := clock.Boot()
	if isDue(s.lastEmptyExpire.Load(), now, min(expireEvery, s.cfg.MaxLateness/100)) {
		steps = append(steps, step{kind: schedulerstore.UpkeepExpire, after: s.cfg.MaxLateness, total: &m.Expired})
	}
	if isDue(s.lastAgeSearch.Load(), now, ageSearchEvery) {
		s.lastAgeSearch.Store(int64(now))
		steps = append(steps,
			step{kind: schedulerstore.UpkeepStuck, after: s.cfg.PrepareTimeout, total: &m.Expired},
			step{kind: schedulerstore.UpkeepOrphans, after: s.cfg.FollowerTimeout, total: &m.Expired})
	}
	for _, x := range steps {
		n, found, failed := s.upkeep(ctx, l, x.kind, x.after)
		*x.total += n
		m.More = m.More || found == maxRounds*schedulerstore.MaxUpkeep
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		if x.kind == schedulerstore.UpkeepExpire && found == 0 {
			s.lastEmptyExpire.Store(int64(now))
		}
	}
	return m, err
}

// isDue reports whether the duration rest has passed since last. Times are clock.Boot readings. If
// last is 0, isDue returns true.
func isDue(last int64, now, rest time.Duration) bool {
	return last == 0 || now-time.Duration(last) >= rest
}

// upkeep does one kind of work until there is no more to do, or until it has executed maxRounds
// statements. It returns how many posts it changed and how many it found. Posts locked by another
// transaction are left for the next call.
func (s *Sender) upkeep(
	ctx context.Context, l dispatch.Lease, kind schedulerstore.Upkeep, after time.Duration,
) (changed, found int, err error) {
	what := "it cannot be given up"
	if kind == schedulerstore.UpkeepReap {
		what = "its claim cannot be ended"
	}
	for range maxRounds {
		skipped := s.setAsides.current(s.deps.Clock.Now())
		ids, err := schedulerstore.Find(ctx, s.db, l, kind, after, skipped, schedulerstore.MaxUpkeep)
		if err != nil || len(ids) == 0 {
			return changed, found, err
		}
		found += len(ids)
		_, err = batch.Isolate(ids, func(some []publishing.PostID) error {
			n, err := schedulerstore.Do(ctx, s.db, kind, some, after, s.db.Node)
			changed += n
			return err
		}, isRefusedOrLocked, func(post publishing.PostID, cause error) {
			if !pg.IsLocked(cause) {
				s.setPostAside(ctx, what)(post, cause)
			}
		})
		if err != nil || len(ids) < schedulerstore.MaxUpkeep {
			return changed, found, err
		}
	}
	return changed, found, nil
}

func isRefusedOrLocked(err error) bool { return pg.IsRefused(err) || pg.IsLocked(err) }

// Sweep returns the time at which each organization in the lease's shards first has a post due.
// Organizations with no post due within the horizon are not included. Sweep also returns the
// database's time. It returns any database error.
func (s *Sender) Sweep(
	ctx context.Context, l dispatch.Lease, horizon time.Duration,
) (map[tenancy.OrgID]time.Time, time.Time, error) {
	return schedulerstore.Sweep(ctx, s.db, l, horizon, s.cfg.MaxLateness)
}
