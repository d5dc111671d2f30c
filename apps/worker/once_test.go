package worker

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/scheduler/dispatch"
)

func TestOnePerPost_TakesSuccessFirst(t *testing.T) {
	t.Parallel()
	a, b := id.New[publishing.PostTag](), id.New[publishing.PostTag]()
	outcome := func(p publishing.PostID, r dispatch.Result) *pendingOutcome {
		return &pendingOutcome{Outcome: dispatch.Outcome{Post: p, Result: r}}
	}
	wave, rest := onePerPost([]*pendingOutcome{
		outcome(a, dispatch.ResultError), outcome(b, dispatch.ResultRetry), outcome(a, dispatch.ResultPublished), outcome(a, dispatch.ResultLater),
	})
	if len(wave) != 2 || wave[0].Post != a || wave[0].Result != dispatch.ResultPublished || wave[1].Post != b {
		t.Errorf("first are %+v", wave)
	}
	if len(rest) != 2 || slices.ContainsFunc(rest, func(e *pendingOutcome) bool { return e.Post != a || e.Result == dispatch.ResultPublished }) {
		t.Errorf("then come %+v", rest)
	}
}

// A locked row beside a post, such as its follower, makes the whole statement fail each time. A
// post that is itself locked is only left out.
func TestFinish_StoresOthersBesideLockedRows(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"of the post", "of its follower"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &backend{hold: make(chan struct{})}
				k, ids := w.start(t, 20)
				free, calls := time.Now().Add(20*time.Second), 0
				if name == "of the post" {
					w.lockedPost, w.lockedUntil = ids[7], free
				}
				w.refuse = func(outcomes []dispatch.Outcome) error {
					calls++
					if w.lockedUntil.IsZero() && time.Now().Before(free) &&
						slices.ContainsFunc(outcomes, func(o dispatch.Outcome) bool { return o.Post == ids[7] }) {
						return &pgconn.PgError{Code: "55P03"}
					}
					return nil
				}
				close(w.hold)
				time.Sleep(time.Second)
				synctest.Wait()
				if got := w.snapshot(); len(got.stored) != 19 || got.inFlight != 1 {
					t.Fatalf("%d outcomes are stored beside one that waits for a lock, %d posts are under way", len(got.stored), got.inFlight)
				}
				time.Sleep(25 * time.Second)
				synctest.Wait()
				if got := w.snapshot(); !same(got.stored, ids) || got.inFlight != 0 || calls > 60 {
					t.Fatalf("%d of %d outcomes are stored by %d statements, %d posts are under way", len(got.stored), len(ids), calls, got.inFlight)
				}
				stop(t, k, time.Minute)
			})
		})
	}
}
