// Package worker publishes posts. It distributes permits among organizations; claims, sends and
// finishes posts; and sweeps for posts that no timer covers.
package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"crier/actors/fairqueue"
	"crier/platform/batch"
	"crier/platform/clock"
	"crier/platform/env"
	"crier/platform/lifecycle"
	"crier/publishing"
	"crier/publishing/scheduler"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// Config configures a Worker. MaxReconcileRest has no environment variable: boot derives it from
// the reconcile window.
type Config struct {
	// MaxReconcileRest is the longest wait before an unresponsive platform is queried again about
	// unknown outcomes.
	MaxReconcileRest time.Duration

	// MaxInFlight is the maximum number of posts in flight. A single destination gets at most half
	// of them.
	MaxInFlight int `env:"MAX_IN_FLIGHT, default=4096" doc:"Maximum number of posts that a process sends at the same time."`
	// SweepInterval limits how long a post that no timer covers can go unnoticed.
	SweepInterval time.Duration `env:"SWEEP_INTERVAL, default=5s" doc:"How often the worker searches for posts that no timer covers."`
	// DrainTimeout limits how long Stop waits for posts in flight, measured from the call to Drain.
	DrainTimeout time.Duration `env:"DRAIN_TIMEOUT, default=25s" doc:"How long a stopping process waits for posts in flight."`
	// Rates apply to all processes together. The processes share them through Redis; without Redis,
	// each process limits itself to its share.
	Rates Rates `env:"PLATFORM_RATES" doc:"Maximum number of posts per platform and interval, such as bluesky=600/1m,sandbox=10/1s."`
}

// Validate returns all configuration faults as one joined error. errors.As can extract an env.Fault
// from it.
func (c Config) Validate() error {
	var faults env.Faults
	faults.Number("MAX_IN_FLIGHT", int64(c.MaxInFlight), 1, 100_000)
	faults.Duration("SWEEP_INTERVAL", c.SweepInterval, 100*time.Millisecond, time.Hour)
	faults.Duration("DRAIN_TIMEOUT", c.DrainTimeout, 100*time.Millisecond, time.Hour)
	return faults.Err()
}

// Actors gives access to the organizations' actors; see org.Client.
type Actors interface {
	// Granted responds to an offer. claimed is the number of posts that were claimed, and next is
	// when the next post is due, or nil if none is.
	Granted(org tenancy.OrgID, claimed int, next *time.Time, now time.Time)
	// Refused responds to an offer whose claim failed. The organization may make another offer
	// after wait.
	Refused(org tenancy.OrgID, wait time.Duration)
	// Done reports that posts are no longer in flight. If waits is true, the organization is queued
	// for a permit and will be woken.
	Done(org tenancy.OrgID, posts int, waits bool)
	// Wake sets the organization's timer to due, which is a time on the database's clock. It does
	// not wait. If a Wake is lost, the sweep wakes the organization.
	Wake(ctx context.Context, org tenancy.OrgID, due time.Time)
	// SetNow reports the database's time, as returned by a statement that was started at the time
	// asked.
	SetNow(now, asked time.Time)
}

// Claimer claims posts; see scheduler.Sender.
type Claimer interface {
	// Warmup makes Postgres plan the statements in advance. Callers can ignore the error, because
	// the statements work without a warm-up.
	Warmup(ctx context.Context) error
	// Claim claims due posts for the organizations in wants. It visits at most window channels of
	// each organization. Any error comes from the database. If Claim returns an error, unanswered
	// lists the numbers of the statements that may have claimed posts anyway.
	Claim(
		ctx context.Context, l dispatch.Lease, wants []dispatch.Want, window int, limits dispatch.ClaimLimits,
	) (result dispatch.ClaimResult, unanswered []int64, err error)
	// GiveBack returns the posts of unanswered claims to the queue. It can be called again after an
	// error.
	GiveBack(ctx context.Context, l dispatch.Lease, unanswered []int64) error
	// Load reads what is needed to send the claimed posts. If a post cannot be read, unreadable
	// contains its outcome. A post that this process may no longer send is in neither map. If Load
	// returns an error, the posts in neither map were not loaded.
	Load(
		ctx context.Context, claimed []dispatch.Claimed,
	) (works map[publishing.PostID]dispatch.Work, unreadable map[publishing.PostID]dispatch.Outcome, err error)
}

// Publisher sends posts and stores their outcomes; see scheduler.Sender.
type Publisher interface {
	// Send sends a claimed post and returns its outcome, which the caller stores with Finish. To
	// wait for d without holding a permit, Send calls yield. If yield returns an error, Send must
	// stop and return an outcome.
	Send(
		ctx context.Context, w dispatch.Work, yield func(ctx context.Context, d time.Duration) error,
	) dispatch.Outcome
	// Finish stores outcomes in one statement. If it returns an error for which pg.IsAway returns
	// true, the outcomes may have been stored anyway, and Finish can be called again. If it returns
	// any other Postgres error, no outcome was stored.
	Finish(ctx context.Context, outcomes []dispatch.Outcome) ([]dispatch.Finished, error)
	// SetAside adds a timeline event that explains why a post's outcome cannot be stored. It
	// returns any database error.
	SetAside(ctx context.Context, o dispatch.Outcome, cause error) error
}

// Maintainer handles posts that are late, have an unknown outcome or are not covered by a timer;
// see scheduler.Sender.
type Maintainer interface {
	// Maintain abandons posts that are late, stuck or orphaned, and ends the claims of dead
	// processes. It returns all errors, joined.
	Maintain(ctx context.Context, l dispatch.Lease) (scheduler.Maintained, error)
	// ClaimUnknown claims and loads posts that have an unknown outcome and whose platform must be
	// queried now. It calls admit before it claims a post. If admit returns false, the post is left
	// for later. If a post's destination is in resting, ClaimUnknown does not call admit, and
	// claims the post only if it will end without a query to the platform.
	//
	// Any error comes from the database. Even then, unknown contains the posts that were claimed
	// and loaded.
	ClaimUnknown(
		ctx context.Context, l dispatch.Lease, resting []string, admit func(dispatch.UnknownPost) bool,
	) (unknown []scheduler.Unknown, more bool, err error)
	// Reconcile queries the platform about an unknown outcome and returns the resulting outcome.
	// unanswered is an error that explains why the destination did not respond. It is nil if the
	// destination responded or was not queried.
	Reconcile(ctx context.Context, u scheduler.Unknown) (out dispatch.Outcome, unanswered error)
	// Sweep returns the organizations that have a post due within the horizon, together with the
	// time at which each organization's first such post is due. now is the database's time, or zero
	// if nothing is due. Any error comes from the database.
	Sweep(
		ctx context.Context, l dispatch.Lease, horizon time.Duration,
	) (next map[tenancy.OrgID]time.Time, now time.Time, err error)
	// WriteOccurrences inserts the next occurrences of repeated posts. If more is true, it should
	// be called again immediately. An error means that the database could not be reached.
	WriteOccurrences(ctx context.Context, l dispatch.Lease) (written int, more bool, err error)
}

// Deps holds the dependencies of a Worker. Only Bucket may be nil.
type Deps struct {
	Claimer    Claimer
	Publisher  Publisher
	Maintainer Maintainer
	Actors     Actors
	// Offers holds the claims that the organizations' actors have requested.
	Offers *fairqueue.Offers
	// Lease returns the shards that this process owns now. The result may change from one call to
	// the next.
	Lease func() dispatch.Lease
	// Suspend hands this process's organizations over to other processes while a loop hangs.
	Suspend func(reason string)
	// Resume takes the organizations back once no loop hangs.
	Resume func()
	// Bucket is nil if the processes share no rate limits.
	Bucket  Bucket
	Clock   clock.Clock
	Log     *slog.Logger
	Metrics *Metrics
}

// Worker publishes the posts of the organizations whose shards this process owns. It is safe for
// concurrent use.
type Worker struct {
	cfg  Config
	deps Deps

	limits       *limits
	destinations *destinations
	reconciles   *reconcileLimiter
	finish       *batch.Batcher[*pendingOutcome]

	// Only the claim loop uses scans and spans.
	scans scans
	spans spans

	mu           sync.Mutex // protects the fields below
	free         int        // permits
	lostClaims   []lostClaim
	cancelClaims context.CancelFunc
	// cancelSending cancels the contexts of the posts that are being sent.
	cancelSending context.CancelFunc
	drainStarted  time.Time // zero before Drain

	claiming, finishing, sweeping lifecycle.Watchdog

	sweeper *lifecycle.Loop
	watcher *lifecycle.Loop
	hang    hang // used only by the watcher

	ready       chan struct{} // receives when a permit is released
	draining    chan struct{} // closed when claiming stops
	stopExpired chan struct{} // closed when the time for Stop has run out

	loops   sync.WaitGroup // the loops, and the goroutine that watches them
	sending sync.WaitGroup // posts being sent or reconciled
}

// lostClaim is a claim statement whose response was lost.
type lostClaim struct {
	number int64
	at     time.Time
}

// New returns a Worker, which claims nothing before Start. It panics if another Worker uses the
// same Metrics.
func New(cfg Config, deps Deps) *Worker {
	w := &Worker{
		cfg: cfg, deps: deps, free: cfg.MaxInFlight, reconciles: newReconcileLimiter(cfg.MaxReconcileRest),
		scans: scans{}, spans: spans{}, ready: make(chan struct{}, 1),
		draining: make(chan struct{}), stopExpired: make(chan struct{}),
	}
	w.claiming.Limit, w.finishing.Limit, w.sweeping.Limit = claimHangs, finishHangs, sweepHangs
	w.sweeper, w.watcher = w.newSweeper(), lifecycle.NewLoop(lifecycle.LoopRules{Interval: watchEvery})
	w.finish = w.newFinish()
	wake := func(org tenancy.OrgID) { deps.Actors.Wake(context.Background(), org, time.Time{}) }
	w.destinations = newDestinations(wake, w.freePermits, deps.Clock)
	w.limits = newLimits(cfg.Rates, &limits{
		bucket: deps.Bucket, wake: wake, free: w.freePermits, clock: deps.Clock, log: deps.Log,
		share: func() float64 { return float64(len(deps.Lease().Shards)) / tenancy.Shards },
	})
	deps.Metrics.registerGauges(w)
	return w
}

// Start begins claiming and sweeping. The first sweep runs at once. Start must be called only once.
func (w *Worker) Start(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	starting, stop := context.WithCancel(ctx)
	sending, cut := context.WithCancel(ctx)
	w.mu.Lock()
	w.cancelClaims, w.cancelSending = stop, cut
	w.mu.Unlock()
	w.loops.Go(func() {
		w.warmup(starting)
		w.claimLoop(starting, sending)
	})
	w.loops.Go(func() { w.sweeper.Run(starting, w.sweepSteps(sending)...) })
	w.loops.Go(func() { w.watcher.Run(starting, w.watch) })
}

// warmup runs before the first claim and gives up after claimTime.
func (w *Worker) warmup(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	if err := w.deps.Claimer.Warmup(ctx); err != nil && ctx.Err() == nil {
		w.deps.Log.Warn("warming up the statements failed", "error", err)
	}
}

// Drain stops claiming and starts the DRAIN_TIMEOUT period. Calls in progress continue. A post that
// is waiting for its platform goes back to the queue, so that another process can send it.
func (w *Worker) Drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancelClaims != nil && w.drainStarted.IsZero() {
		w.drainStarted = w.deps.Clock.Now()
		w.cancelClaims()
		close(w.draining)
	}
}

// Stop drains the worker, waits at most DRAIN_TIMEOUT for the posts that are being sent, and stores
// every outcome. It must be called after Start. It always returns nil.
//
// A call that is still running when ctx ends is not interrupted. Its outcome is unknown, and the
// platform is queried after the next start. An outcome that cannot be stored before ctx ends is
// logged.
func (w *Worker) Stop(ctx context.Context) error {
	w.Drain()
	w.loops.Wait()
	w.limits.close()
	w.destinations.close()
	ended := make(chan struct{})
	go func() {
		w.sending.Wait()
		close(ended)
	}()
	timeout := time.NewTimer(w.cfg.DrainTimeout - w.deps.Clock.Now().Sub(w.drainStarted))
	defer timeout.Stop()
	select {
	case <-ended:
	case <-timeout.C:
		w.deps.Log.Warn("posts are still being sent; their outcomes are reconciled after the next start")
	case <-ctx.Done():
	}
	w.cancelSending()
	stored := make(chan struct{})
	go func() {
		<-ended
		w.finish.Close()
		close(stored)
	}()
	select {
	case <-stored:
	case <-ctx.Done():
		close(w.stopExpired)
	}
	return nil
}

// SweepNow requests a sweep and does not wait for it. Several calls before the next sweep count as
// one. Sweeps are at least a second apart, or SWEEP_INTERVAL if that is shorter.
func (w *Worker) SweepNow() { w.sweeper.Wake() }

func (w *Worker) release(n int) {
	w.mu.Lock()
	w.free += n
	w.mu.Unlock()
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// freePermits can return a negative number, because takePermit does not wait for a free permit.
func (w *Worker) freePermits() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.free
}

func (w *Worker) releasePermit(destination string) {
	w.release(1)
	w.destinations.release(destination)
}

// takePermit takes back a permit for a destination after a post has waited, even if none is free.
func (w *Worker) takePermit(destination string) {
	w.mu.Lock()
	w.free--
	w.mu.Unlock()
	w.destinations.take(destination)
}

// sendClaimed loads the claimed posts together, then sends each in its own goroutine.
func (w *Worker) sendClaimed(ctx context.Context, round dispatch.ClaimResult) {
	if len(round.Claimed) == 0 {
		return
	}
	w.sending.Add(len(round.Claimed))
	go func() {
		works, unreadable, err := w.deps.Claimer.Load(ctx, round.Claimed)
		if err != nil {
			w.deps.Log.Warn("claimed posts could not be loaded; they go back to the queue",
				"posts", len(round.Claimed), "error", err)
		}
		for _, c := range round.Claimed {
			w.deps.Metrics.claimed(c.Due, w.deps.Clock.Now())
			if out, ok := unreadable[c.Post]; ok {
				w.finishClaim(c, out)
				continue
			}
			work, ok := works[c.Post]
			go w.send(ctx, c, work, ok)
		}
	}()
}

// send sends one post and queues its outcome. A post that could not be loaded goes back to the
// queue.
func (w *Worker) send(ctx context.Context, c dispatch.Claimed, work dispatch.Work, loaded bool) {
	out := scheduler.Requeued(c)
	if loaded && work.Token == c.Token {
		done := w.deps.Metrics.sending()
		out = w.deps.Publisher.Send(ctx, work, func(ctx context.Context, d time.Duration) error {
			return w.yield(ctx, c.Destination, d)
		})
		done(work.Channel.Connector, out.Result)
	}
	w.finishClaim(c, out)
}

// finishClaim queues the outcome and then releases the permit. Because of this order, a full queue
// of outcomes also stops claiming.
func (w *Worker) finishClaim(c dispatch.Claimed, out dispatch.Outcome) {
	defer w.sending.Done()
	w.finish.Add(&pendingOutcome{Outcome: out, posts: 1, destination: c.Destination})
	w.releasePermit(c.Destination)
}

// errDraining ends a post's wait when the worker drains.
var errDraining = errors.New("the worker is draining")

// yield waits for d without holding a permit. It returns errDraining if the worker drains.
func (w *Worker) yield(ctx context.Context, destination string, d time.Duration) error {
	w.releasePermit(destination)
	defer w.takePermit(destination)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-w.draining:
		return errDraining
	case <-ctx.Done():
		return ctx.Err()
	}
}
