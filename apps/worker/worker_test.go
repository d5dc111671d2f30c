package worker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"crier/actors/fairqueue"
	"crier/platform/clock"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/scheduler"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// backend is everything around a worker: an organization with posts to claim, a database that may
// be unavailable, and the actor's count of posts in flight.
type backend struct {
	mu           sync.Mutex
	due          []dispatch.Claimed
	hold         chan struct{}                  // Send waits for it beyond its context; nil = no wait
	slow         time.Duration                  // duration of a claim, unless its context ends
	refuse       func([]dispatch.Outcome) error // the error that Finish returns
	stored       []publishing.PostID
	inFlight     int
	minInFlight  int
	lost         bool // the response to a claim is lost
	setAside     []publishing.PostID
	withoutTexts []publishing.PostID // stored without texts

	lockedPost  publishing.PostID
	lockedUntil time.Time

	givenBack  []int64
	maintainer Maintainer // replaces the backend as Maintainer
	suspend    func(string)
	resume     func()
	log        bytes.Buffer
}

func (w *backend) Warmup(context.Context) error { return nil }

func (w *backend) GiveBack(_ context.Context, _ dispatch.Lease, lost []int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.givenBack = append(w.givenBack, lost...)
	return nil
}

func (w *backend) SetAside(_ context.Context, o dispatch.Outcome, _ error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setAside = append(w.setAside, o.Post)
	return nil
}

func (w *backend) Claim(
	ctx context.Context, _ dispatch.Lease, _ []dispatch.Want, _ int, _ dispatch.ClaimLimits,
) (dispatch.ClaimResult, []int64, error) {
	select {
	case <-time.After(w.slow):
	case <-ctx.Done():
		return dispatch.ClaimResult{}, []int64{7}, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := dispatch.NewClaimResult()
	if w.lost {
		return r, []int64{7}, context.DeadlineExceeded
	}
	r.Claimed, w.due = w.due, nil
	return r, nil, nil
}

func (w *backend) Load(_ context.Context, claimed []dispatch.Claimed) (map[publishing.PostID]dispatch.Work, map[publishing.PostID]dispatch.Outcome, error) {
	out := map[publishing.PostID]dispatch.Work{}
	for _, c := range claimed {
		out[c.Post] = dispatch.Work{Org: organization, Post: c.Post, Token: token}
	}
	return out, nil, nil
}

func (w *backend) Send(_ context.Context, x dispatch.Work, _ func(context.Context, time.Duration) error) dispatch.Outcome {
	if w.hold != nil {
		<-w.hold
	}
	return dispatch.Outcome{Org: x.Org, Post: x.Post, Token: x.Token, Result: dispatch.ResultPublished, ReleaseID: "release of " + x.Post.String(), ReleaseURL: "url"}
}

func (w *backend) Finish(_ context.Context, outcomes []dispatch.Outcome) (out []dispatch.Finished, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse != nil {
		if err := w.refuse(outcomes); err != nil {
			return nil, err
		}
	}
	for _, o := range outcomes {
		if o.Post == w.lockedPost && time.Now().Before(w.lockedUntil) {
			out = append(out, dispatch.Finished{Org: o.Org, Post: o.Post, State: publishing.StatePublishing, Locked: true})
			continue
		}
		w.stored = append(w.stored, o.Post)
		if o.Ref == nil && o.ReleaseURL == "" {
			w.withoutTexts = append(w.withoutTexts, o.Post)
		}
		out = append(out, dispatch.Finished{Org: o.Org, Post: o.Post, State: publishing.StatePublished})
	}
	return out, nil
}

func (w *backend) Maintain(context.Context, dispatch.Lease) (scheduler.Maintained, error) {
	return scheduler.Maintained{}, nil
}

func (w *backend) ClaimUnknown(context.Context, dispatch.Lease, []string, func(dispatch.UnknownPost) bool) ([]scheduler.Unknown, bool, error) {
	return nil, false, nil
}

func (w *backend) Reconcile(context.Context, scheduler.Unknown) (dispatch.Outcome, error) {
	return dispatch.Outcome{}, nil
}

func (w *backend) Sweep(context.Context, dispatch.Lease, time.Duration) (map[tenancy.OrgID]time.Time, time.Time, error) {
	return nil, time.Time{}, nil
}

func (w *backend) WriteOccurrences(context.Context, dispatch.Lease) (int, bool, error) {
	return 0, false, nil
}

func (w *backend) Granted(_ tenancy.OrgID, claimed int, _ *time.Time, _ time.Time) { w.count(claimed) }

func (w *backend) Refused(tenancy.OrgID, time.Duration) {}

func (w *backend) Done(_ tenancy.OrgID, posts int, _ bool) { w.count(-posts) }

func (w *backend) Wake(context.Context, tenancy.OrgID, time.Time) {}

func (w *backend) SetNow(_, _ time.Time) {}

// snapshot is a copy of the state of the backend.
type snapshot struct {
	stored, setAside, withoutTexts []publishing.PostID
	givenBack                      []int64
	inFlight, minInFlight          int
}

func (w *backend) snapshot() snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return snapshot{
		stored: slices.Clone(w.stored), setAside: slices.Clone(w.setAside), withoutTexts: slices.Clone(w.withoutTexts), givenBack: slices.Clone(w.givenBack),
		inFlight: w.inFlight, minInFlight: w.minInFlight,
	}
}

func (w *backend) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight += n
	w.minInFlight = min(w.minInFlight, w.inFlight)
}

func (w *backend) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

var _ io.Writer = (*backend)(nil)

const organizationText = "01890000-0000-7000-8000-000000000001"

var (
	organization, _ = id.Parse[tenancy.OrgTag](organizationText)
	token           = uuid.MustParse(organizationText)
)

func (w *backend) start(t *testing.T, posts int) (*Worker, []publishing.PostID) {
	t.Helper()
	var ids []publishing.PostID
	for range posts {
		p := id.New[publishing.PostTag]()
		ids = append(ids, p)
		w.due = append(w.due, dispatch.Claimed{Org: organization, Post: p, Token: token})
	}
	k := w.build()
	k.Start(t.Context())
	k.deps.Offers.Offer(organization, 64)
	return k, ids
}

func (w *backend) build() *Worker {
	var keeper Maintainer = w
	if w.maintainer != nil {
		keeper = w.maintainer
	}
	if w.suspend == nil {
		w.suspend, w.resume = func(string) {}, func() {}
	}
	return New(Config{MaxInFlight: 64, SweepInterval: time.Hour, DrainTimeout: 5 * time.Second}, Deps{
		Claimer: w, Publisher: w, Maintainer: keeper, Actors: w, Offers: fairqueue.NewOffers(), Clock: clock.System{}, Log: slog.New(slog.NewTextHandler(w, nil)), Metrics: NewMetrics(prometheus.NewRegistry()),
		Lease: func() dispatch.Lease { return dispatch.Lease{Shards: []int16{1}} }, Suspend: w.suspend, Resume: w.resume,
	})
}

func stop(t *testing.T, k *Worker, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := k.Stop(ctx); err != nil {
		t.Fatal(err)
	}
}

func same(got, want []publishing.PostID) bool {
	return len(got) == len(want) && !slices.ContainsFunc(want, func(p publishing.PostID) bool { return !slices.Contains(got, p) })
}

func TestStop_SendsPostsOfClaimInProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &backend{slow: 2 * time.Second}
		k, ids := w.start(t, 20)
		time.Sleep(time.Second)
		stop(t, k, time.Minute)
		if !same(w.stored, ids) || w.inFlight != 0 {
			t.Fatalf("%d of %d outcomes stored, %d under way", len(w.stored), len(ids), w.inFlight)
		}
	})
}

func TestStop_LogsOutcomesThatCouldNotBeStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &backend{refuse: func([]dispatch.Outcome) error { return errors.New("connection refused") }}
		k, ids := w.start(t, 3)
		time.Sleep(time.Second)
		stop(t, k, 7*time.Second)
		synctest.Wait()
		for _, p := range ids {
			if !strings.Contains(w.log.String(), "release of "+p.String()) {
				t.Fatalf("no word of %s:\n%s", p, w.log.String())
			}
		}
	})
}

func TestStop_DoesNotWaitForHangingCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &backend{hold: make(chan struct{})}
		k, ids := w.start(t, 1)
		synctest.Wait()
		began := time.Now()
		stop(t, k, 7*time.Second)
		if took := time.Since(began); took > 7*time.Second {
			t.Fatalf("took %v", took)
		}
		close(w.hold) // the call ends while the process still runs
		synctest.Wait()
		if !slices.Equal(w.stored, ids) {
			t.Fatalf("stored %v", w.stored)
		}
	})
}

func TestClaim_GrantsBeforeDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &backend{}
		k, _ := w.start(t, 60)
		time.Sleep(time.Second)
		synctest.Wait()
		if w.minInFlight < 0 || w.inFlight != 0 {
			t.Fatalf("%d under way, %d at the least", w.inFlight, w.minInFlight)
		}
		stop(t, k, time.Minute)
	})
}
