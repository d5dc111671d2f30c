package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/scheduler"
	"crier/publishing/scheduler/dispatch"
)

func TestFinish_WaitsUntilStatementsSucceed(t *testing.T) {
	t.Parallel()
	// The database cannot be reached; a grant, a table or a column is missing; the disk is full; a
	// statement runs out of time.
	causes := []error{errors.New("connection refused")}
	for _, code := range []string{"42501", "42P01", "42703", "53100", "57014", "55P03"} {
		causes = append(causes, &pgconn.PgError{Code: code})
	}
	for _, cause := range causes {
		t.Run(cause.Error(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				back := time.Now().Add(10 * time.Minute)
				w := &backend{refuse: func([]dispatch.Outcome) error {
					if time.Now().Before(back) {
						return cause
					}
					return nil
				}}
				k, ids := w.start(t, 40)
				time.Sleep(15 * time.Minute)
				synctest.Wait()
				if got := w.snapshot(); !same(got.stored, ids) || len(got.setAside) != 0 || got.inFlight != 0 {
					t.Errorf("%d of %d outcomes are stored, %d set aside, %d under way", len(got.stored), len(ids), len(got.setAside), got.inFlight)
				}
				stop(t, k, time.Minute)
			})
		})
	}
}

func TestFinish_SetsRefusedOutcomeAside(t *testing.T) {
	t.Parallel()
	// A function raises an exception, a constraint is violated, a page is damaged.
	for _, code := range []string{"P0002", "P0001", "23514", "54000", "XX001"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &backend{hold: make(chan struct{})}
				k, ids := w.start(t, 20)
				bad, well := ids[7], time.Now().Add(30*time.Minute)
				w.refuse = func(outcomes []dispatch.Outcome) error {
					if time.Now().Before(well) && slices.ContainsFunc(outcomes, func(o dispatch.Outcome) bool { return o.Post == bad }) {
						return &pgconn.PgError{Code: code}
					}
					return nil
				}
				close(w.hold)
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := w.snapshot(); len(got.stored) != 19 || got.inFlight != 0 || !slices.Equal(got.setAside, []publishing.PostID{bad}) {
					t.Fatalf("%d of 19 outcomes are stored beside a refused one, %d are under way, %v is set aside", len(got.stored), got.inFlight, got.setAside)
				}
				if !strings.Contains(w.log.String(), "release of "+bad.String()) {
					t.Errorf("the log does not say what is out:\n%s", w.log.String())
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if got := w.snapshot(); !same(got.stored, ids) || got.minInFlight < 0 {
					t.Fatalf("once it is accepted, %d of %d outcomes are stored", len(got.stored), len(ids))
				}
				stop(t, k, time.Minute)
			})
		})
	}
}

// stuckFinish is a database that lets the statement with the outcome of one post run out of time
// until a given moment.
type stuckFinish struct {
	*backend
	post  publishing.PostID
	until time.Time
}

func (s *stuckFinish) Finish(ctx context.Context, outcomes []dispatch.Outcome) ([]dispatch.Finished, error) {
	if time.Now().Before(s.until) && slices.ContainsFunc(outcomes, func(o dispatch.Outcome) bool { return o.Post == s.post }) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.backend.Finish(ctx, outcomes)
}

func TestFinish_SlowOutcomeDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &backend{hold: make(chan struct{})}
		var ids []publishing.PostID
		for range 20 {
			p := id.New[publishing.PostTag]()
			ids = append(ids, p)
			w.due = append(w.due, dispatch.Claimed{Org: organization, Post: p, Token: token})
		}
		k := w.build()
		k.deps.Publisher = &stuckFinish{backend: w, post: ids[7], until: time.Now().Add(time.Hour)}
		k.Start(t.Context())
		k.deps.Offers.Offer(organization, 64)
		close(w.hold)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if got := w.snapshot(); len(got.stored) != 19 || len(got.setAside) != 0 || got.inFlight != 1 {
			t.Fatalf("%d of 19 outcomes are stored beside a slow one, %d are set aside, %d under way", len(got.stored), len(got.setAside), got.inFlight)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := w.snapshot(); !same(got.stored, ids) || got.inFlight != 0 {
			t.Errorf("%d of %d outcomes are stored when none is slow, %d are under way", len(got.stored), len(ids), got.inFlight)
		}
		stop(t, k, time.Minute)
		if !strings.Contains(w.log.String(), "release of "+ids[7].String()) {
			t.Errorf("the log does not say what was out:\n%s", w.log.String())
		}
	})
}

func TestFinish_StoresRefusedOutcomeWithoutItsTexts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &backend{hold: make(chan struct{})}
		k, ids := w.start(t, 20)
		bad := ids[7]
		w.refuse = func(outcomes []dispatch.Outcome) error {
			if slices.ContainsFunc(outcomes, func(o dispatch.Outcome) bool { return o.Post == bad && o.ReleaseURL != "" }) {
				return &pgconn.PgError{Code: "22021"}
			}
			return nil
		}
		close(w.hold)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.snapshot(); !same(got.stored, ids) || !slices.Equal(got.withoutTexts, []publishing.PostID{bad}) || len(got.setAside) != 0 {
			t.Fatalf("%d of %d are stored, without texts %v, aside %v", len(got.stored), len(ids), got.withoutTexts, got.setAside)
		}
		stop(t, k, time.Minute)
	})
}

func TestClaim_GivesBackClaimsWithoutResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &backend{lost: true}
		k, _ := w.start(t, 1)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !slices.Contains(w.snapshot().givenBack, 7) {
			t.Fatal("the claim is not given back")
		}
		stop(t, k, time.Minute)
	})
}

// countingMaintainer counts sweeps. Each sweep asks for another.
type countingMaintainer struct {
	*backend
	sweeps atomic.Int64
	hang   chan struct{} // the first sweep waits for it, even beyond its context; nil = no wait
}

func (k *countingMaintainer) Maintain(context.Context, dispatch.Lease) (scheduler.Maintained, error) {
	if k.sweeps.Add(1) == 1 && k.hang != nil {
		<-k.hang
	}
	return scheduler.Maintained{More: true}, nil
}

func TestSweep_HasMinimumInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &countingMaintainer{backend: &backend{}}
		k.maintainer = k
		w, _ := k.start(t, 0)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := k.sweeps.Load(); n < 5 || n > 11 {
			t.Errorf("%d sweeps in ten seconds, each of which asks for another", n)
		}
		stop(t, w, time.Minute)
	})
}

func TestWatch_SuspendsWhileLoopHangs(t *testing.T) {
	t.Parallel()
	w := &backend{}
	var suspended, resumed atomic.Int64
	w.suspend, w.resume = func(string) { suspended.Add(1) }, func() { resumed.Add(1) }
	k := w.build()
	k.sweeping.Limit = time.Millisecond
	k.sweeping.Begin()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { k.watcher.Run(ctx, k.watch); close(over) }()
	await(t, "the process is suspended", func() bool { return suspended.Load() == 1 })
	if err := k.Check(t.Context()); err == nil {
		t.Error("a worker whose sweep hangs is healthy")
	}
	k.sweeping.End()
	await(t, "the process takes part again", func() bool { return resumed.Load() == 1 })
	if err := k.Check(t.Context()); err != nil {
		t.Error(err)
	}
	cancel()
	<-over
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
