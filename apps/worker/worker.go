// Package worker publishes: it hands out permits in turns, claims, sends and finishes posts, and sweeps up what was left behind.
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
	"crier/publishing"
	"crier/publishing/sender"
	"crier/tenancy"
)

// Config of a worker.
type Config struct {
	InFlight int           `env:"MAX_IN_FLIGHT, default=4096" doc:"Posts that one process sends at the same time, at most half of them to one destination."`
	Sweep    time.Duration `env:"SWEEP, default=5s" doc:"How often forgotten and doubtful posts are looked for."`
	Drain    time.Duration `env:"DRAIN_TIMEOUT, default=25s" doc:"How long calls under way may take to end at a stop."`
	LookRest time.Duration // the longest that a platform which does not answer is not asked for unknown outcomes
	Rates    Rates         `env:"PLATFORM_RATES" doc:"What a platform takes from all processes together, such as bluesky=600/1m,sandbox=10/1s: so many posts at once, and as many again, evenly, in every span after that. Shared through REDIS_URL; without it each process keeps to its part."`
}

// Actors is how the worker tells organizations' actors what came of their offers.
type Actors interface {
	Granted(org tenancy.OrgID, claimed int, next *time.Time, now time.Time)
	Refused(org tenancy.OrgID, wait time.Duration)
	Done(org tenancy.OrgID, posts int, waits bool)
	Wake(ctx context.Context, org tenancy.OrgID, due time.Time)
	SetNow(now, asked time.Time)
}

// Claimer takes posts out of the queue; see sender.Sender.
type Claimer interface {
	Warmup(ctx context.Context) error
	Claim(ctx context.Context, l publishing.Lease, wants []publishing.Want, window int, limits publishing.ClaimLimits) (publishing.ClaimResult, []int64, error)
	GiveBack(ctx context.Context, l publishing.Lease, lost []int64) error
	Load(ctx context.Context, claimed []publishing.Claimed) (map[publishing.PostID]publishing.Work, map[publishing.PostID]publishing.Outcome, error)
}

// Publisher is the act of publishing; see sender.Sender.
type Publisher interface {
	Send(ctx context.Context, w publishing.Work, yield func(ctx context.Context, d time.Duration) error) publishing.Outcome
	Finish(ctx context.Context, outcomes []publishing.Outcome) ([]publishing.Finished, error)
	SetAside(ctx context.Context, o publishing.Outcome, cause error) error
}

// Keeper looks after what is late, unknown or forgotten; see sender.Sender.
type Keeper interface {
	Maintain(ctx context.Context, l publishing.Lease) (sender.Maintained, error)
	Doubts(ctx context.Context, l publishing.Lease, resting []string, admit func(publishing.UnknownPost) bool) ([]sender.Doubt, bool, error)
	Reconcile(ctx context.Context, d sender.Doubt) (publishing.Outcome, error)
	Sweep(ctx context.Context, l publishing.Lease, horizon time.Duration) (map[tenancy.OrgID]time.Time, time.Time, error)
	WriteOccurrences(ctx context.Context, l publishing.Lease) (written int, more bool, err error)
}

// Deps is what a worker needs.
type Deps struct {
	Claimer   Claimer
	Publisher Publisher
	Keeper    Keeper
	Actors    Actors
	Lease     func() publishing.Lease
	Suspend   func(reason string) // leaves the organizations to other processes while a loop hangs
	Resume    func()
	Bucket    Bucket // nil when the processes share none
	Clock     clock.Clock
	Log       *slog.Logger
	Metrics   *Metrics
}

// Worker sends posts. Start it once.
type Worker struct {
	cfg  Config
	deps Deps

	mu     sync.Mutex
	turns  fairqueue.Queue
	limits *limits
	places *places
	looks  *lookouts
	scans  scans // of the claim loop
	free   int
	lost   []lostClaim

	spans spans // of the claim loop

	claiming, finishing, sweeping pulse

	ready  chan struct{} // an offer or a permit came in
	sweep  chan struct{}
	finish *batch.Batcher[*ended]
	quiet  chan struct{} // closed when nothing more is claimed
	over   chan struct{} // closed when the time for a clean stop is up

	claims  sync.WaitGroup // the loops that start work, and the one that watches them
	sending sync.WaitGroup // posts under way
	stop    context.CancelFunc
	cut     context.CancelFunc
	stopped time.Time // when nothing more was claimed; zero before
}

// lostClaim is a claim statement whose answer never came.
type lostClaim struct {
	number int64
	at     time.Time
}

// New makes a worker. It is the Dispatcher of the organizations' actors.
func New(cfg Config, deps Deps) *Worker {
	w := &Worker{
		cfg: cfg, deps: deps, free: cfg.InFlight, looks: newLookouts(cfg.LookRest), scans: scans{},
		spans: spans{},
		ready: make(chan struct{}, 1), sweep: make(chan struct{}, 1), quiet: make(chan struct{}), over: make(chan struct{}),
	}
	w.claiming.name, w.claiming.limit = "claim", claimHangs
	w.finishing.name, w.finishing.limit = "finish", finishHangs
	w.sweeping.name, w.sweeping.limit = "sweep", sweepHangs
	w.finish = w.newFinish()
	wake := func(org tenancy.OrgID) { deps.Actors.Wake(context.Background(), org, time.Time{}) }
	w.places = newPlaces(wake, w.permits, deps.Clock)
	w.limits = newLimits(cfg.Rates, &limits{
		bucket: deps.Bucket, wake: wake, free: w.permits, clock: deps.Clock, log: deps.Log,
		share: func() float64 { return float64(len(deps.Lease().Shards)) / tenancy.Shards },
	})
	deps.Metrics.watch(w)
	return w
}

// Start begins to claim and to sweep; the first sweep is at once.
func (w *Worker) Start(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	starting, stop := context.WithCancel(ctx)
	sending, cut := context.WithCancel(ctx)
	w.mu.Lock()
	w.stop, w.cut = stop, cut
	w.mu.Unlock()
	w.claims.Go(func() {
		w.warmup(starting)
		w.claimLoop(starting, sending)
	})
	w.claims.Go(func() { w.sweepLoop(starting, sending) })
	w.claims.Go(func() { w.watch(starting) })
}

// warmup runs before the first claim and gives up after claimTime.
func (w *Worker) warmup(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	if err := w.deps.Claimer.Warmup(ctx); err != nil && ctx.Err() == nil {
		w.deps.Log.Warn("the statements could not be planned ahead", "error", err)
	}
}

// Quiesce claims nothing more. Calls under way go on, and the time that Stop gives them begins here; a post that only waits for its platform goes back, to be
// taken up by another process.
func (w *Worker) Quiesce() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil && w.stopped.IsZero() {
		w.stopped = w.deps.Clock.Now()
		w.stop()
		close(w.quiet)
	}
}

// Stop claims nothing more, gives what is under way its time, and stores every outcome. A call that is still running when ctx ends is not cut off:
// what it did is looked up after the next start. An outcome that can then not be stored any more is written into the log.
func (w *Worker) Stop(ctx context.Context) error {
	w.Quiesce()
	w.claims.Wait()
	w.limits.close()
	w.places.close()
	ended := make(chan struct{})
	go func() { w.sending.Wait(); close(ended) }()
	patience := time.NewTimer(w.cfg.Drain - w.deps.Clock.Now().Sub(w.stopped))
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
		w.deps.Log.Warn("posts are still being sent; their outcome is looked up after the next start")
	case <-ctx.Done():
	}
	w.cut()
	stored := make(chan struct{})
	go func() {
		<-ended
		w.finish.Close()
		close(stored)
	}()
	select {
	case <-stored:
	case <-ctx.Done():
		close(w.over)
	}
	return nil
}

// Offer puts an organization into the queue for permits.
func (w *Worker) Offer(org tenancy.OrgID, permits int) {
	w.mu.Lock()
	w.turns.Offer(org, permits)
	w.mu.Unlock()
	signal(w.ready)
}

// SweepNow looks for forgotten posts at once.
func (w *Worker) SweepNow() { signal(w.sweep) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (w *Worker) release(n int) {
	w.mu.Lock()
	w.free += n
	w.mu.Unlock()
	signal(w.ready)
}

// permits is how many nobody holds.
func (w *Worker) permits() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.free
}

// releaseOf gives back the permit of a post to a destination.
func (w *Worker) releaseOf(place string) {
	w.release(1)
	w.places.release(place)
}

// acquireOf takes the permit back after a wait.
func (w *Worker) acquireOf(place string) {
	w.mu.Lock()
	w.free--
	w.mu.Unlock()
	w.places.take(place)
}

// start loads what was claimed, in one go, and sends each post by itself.
func (w *Worker) start(ctx context.Context, round publishing.ClaimResult) {
	if len(round.Claimed) == 0 {
		return
	}
	w.sending.Add(len(round.Claimed))
	go func() {
		works, unreadable, err := w.deps.Claimer.Load(ctx, round.Claimed)
		if err != nil {
			w.deps.Log.Warn("claimed posts could not be loaded; they go back to the queue", "posts", len(round.Claimed), "error", err)
		}
		for _, c := range round.Claimed {
			w.deps.Metrics.claimed(c.Due, w.deps.Clock.Now())
			if out, ok := unreadable[c.Post]; ok {
				w.ended(c, out)
				continue
			}
			work, ok := works[c.Post]
			go w.send(ctx, c, work, ok)
		}
	}()
}

// send publishes one post and hands its outcome on. What could not be loaded goes back to the queue.
func (w *Worker) send(ctx context.Context, c publishing.Claimed, work publishing.Work, loaded bool) {
	out := sender.Returned(c)
	if loaded && work.Token == c.Token {
		done := w.deps.Metrics.sending()
		out = w.deps.Publisher.Send(ctx, work, func(ctx context.Context, d time.Duration) error { return w.yield(ctx, c.Place, d) })
		done(work.Channel.Connector, out.Result)
	}
	w.ended(c, out)
}

// ended hands the outcome of a claimed post on and gives back what the post held.
func (w *Worker) ended(c publishing.Claimed, out publishing.Outcome) {
	defer w.sending.Done()
	w.finish.Add(&ended{Outcome: out, posts: 1, place: c.Place})
	w.releaseOf(c.Place)
}

// errQuiet ends the waiting of a post when the process is about to stop.
var errQuiet = errors.New("the worker is stopping")

// yield waits without a permit.
func (w *Worker) yield(ctx context.Context, place string, d time.Duration) error {
	w.releaseOf(place)
	defer w.acquireOf(place)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-w.quiet:
		return errQuiet
	case <-ctx.Done():
		return ctx.Err()
	}
}
