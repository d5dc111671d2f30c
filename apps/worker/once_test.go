package worker

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/id"
	"crier/publishing"
	publishingservice "crier/publishing/service"
	publishingstore "crier/publishing/store"
)

func TestOnce_TakesOneOutcomeOfEachPostSuccessFirst(t *testing.T) {
	t.Parallel()
	a, b := id.New[publishing.PostTag](), id.New[publishing.PostTag]()
	outcome := func(p publishing.PostID, r publishingservice.Result) *ended {
		return &ended{Outcome: publishingservice.Outcome{Post: p, Result: r}}
	}
	wave, rest := once([]*ended{
		outcome(a, publishingstore.ResultError), outcome(b, publishingstore.ResultRetry), outcome(a, publishingstore.ResultPublished), outcome(a, publishingstore.ResultLater),
	})
	if len(wave) != 2 || wave[0].Post != a || wave[0].Result != publishingstore.ResultPublished || wave[1].Post != b {
		t.Errorf("first are %+v", wave)
	}
	if len(rest) != 2 || slices.ContainsFunc(rest, func(e *ended) bool { return e.Post != a || e.Result == publishingstore.ResultPublished }) {
		t.Errorf("then come %+v", rest)
	}
}

// What a post brings along, such as the part that waits for it, can be locked when the post is not: the whole statement
// then fails, and again each time.
func TestFinish_LockedFollowerHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{hold: make(chan struct{})}
		k, ids := w.start(t, 20)
		free := time.Now().Add(20 * time.Second)
		calls := 0
		w.refuse = func(outcomes []publishingservice.Outcome) error {
			calls++
			if time.Now().Before(free) && slices.ContainsFunc(outcomes, func(o publishingservice.Outcome) bool { return o.Post == ids[7] }) {
				return &pgconn.PgError{Code: "55P03"}
			}
			return nil
		}
		close(w.hold)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := w.seen(); len(got.stored) != 19 {
			t.Fatalf("%d outcomes are stored beside one that waits for a lock", len(got.stored))
		}
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if got := w.seen(); !same(got.stored, ids) || got.busy != 0 || calls > 60 {
			t.Fatalf("%d of %d outcomes are stored by %d statements, %d posts are under way", len(got.stored), len(ids), calls, got.busy)
		}
		stop(t, k, time.Minute)
	})
}

func TestFinish_StoresOutcomeOfALockedPostLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{hold: make(chan struct{})}
		k, ids := w.start(t, 20)
		w.lockedPost, w.lockedUntil = ids[7], time.Now().Add(5*time.Second)
		close(w.hold)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := w.seen(); len(got.stored) != 19 || got.busy != 1 {
			t.Fatalf("%d outcomes are stored beside that of a locked post, %d posts are under way", len(got.stored), got.busy)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := w.seen(); !same(got.stored, ids) || got.busy != 0 {
			t.Fatalf("%d of %d outcomes are stored, %d posts are under way", len(got.stored), len(ids), got.busy)
		}
		stop(t, k, time.Minute)
	})
}
