// Package worker publishes: it hands out permits in turns, claims, sends and finishes posts, and sweeps up what was left behind.
package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"crier/actors/cluster"
	"crier/actors/order"
	"crier/platform/clock"
	"crier/publishing"
	publishingservice "crier/publishing/service"
	"crier/tenancy"
)

// Config of a worker.
type Config struct {
	InFlight int           `env:"MAX_IN_FLIGHT, default=2048" doc:"Posts that one process sends at the same time."`
	Sweep    time.Duration `env:"SWEEP, default=5s" doc:"How often forgotten and doubtful posts are looked for."`
	Drain    time.Duration `env:"DRAIN_TIMEOUT, default=25s" doc:"How long calls under way may take to end at a stop."`
	Rates    Rates         `env:"PLATFORM_RATES" doc:"What a platform takes from all processes together, such as bluesky=600/1m,sandbox=10/1s: so many posts at once, and as many again, evenly, in every span after that. Shared through REDIS_URL; without it each process keeps to its part."`
}

// Actors is how the worker tells organizations' actors what came of their offers.
type Actors interface {
	Granted(org tenancy.OrgID, claimed int, next *time.Time, now time.Time)
	Refused(org tenancy.OrgID, wait time.Duration)
	Done(org tenancy.OrgID, posts int)
	Wake(ctx context.Context, org tenancy.OrgID, due time.Time)
	SetNow(now, asked time.Time)
}

// Publisher is the act of publishing; see publishingservice.Publisher.
type Publisher interface {
	Rehearse(ctx context.Context) error
	Claim(ctx context.Context, l publishingservice.Lease, wants []publishingservice.Want, limits publishingservice.Limits) (publishingservice.Round, error)
	Heads(ctx context.Context, l publishingservice.Lease, wants []publishingservice.Want, platforms []string) (map[string]int, error)
	Load(ctx context.Context, claimed []publishingservice.Claimed) ([]publishingservice.Work, error)
	Send(ctx context.Context, w publishingservice.Work, yield func(ctx context.Context, d time.Duration) error) publishingservice.Outcome
	Finish(ctx context.Context, outcomes []publishingservice.Outcome) ([]publishingservice.Finished, error)
}

// Keeper looks after what is late, doubtful or forgotten; see publishingservice.Publisher.
type Keeper interface {
	Tend(ctx context.Context, l publishingservice.Lease) (expired, reaped int, err error)
	Doubts(ctx context.Context, l publishingservice.Lease) ([]publishingservice.Doubt, error)
	Reconcile(ctx context.Context, d publishingservice.Doubt) publishingservice.Outcome
	Sweep(ctx context.Context, l publishingservice.Lease, horizon time.Duration) (map[tenancy.OrgID]time.Time, time.Time, error)
}

// Deps is what a worker needs.
type Deps struct {
	Publisher Publisher
	Keeper    Keeper
	Actors    Actors
	Lease     func() cluster.Lease
	Bucket    Bucket         // nil when the processes share none
	Caps      map[string]int // by platform, how many posts this process sends at the same time
	Clock     clock.Clock
	Log       *slog.Logger
	Metrics   *Metrics
}

// Worker sends posts. Start it once.
type Worker struct {
	cfg  Config
	deps Deps

	mu     sync.Mutex
	turns  order.Turns
	limits *limits
	free   int
	ready  chan struct{} // an offer or a permit came in
	sweep  chan struct{}
	finish chan ended
	quiet  chan struct{} // closed when nothing more is claimed
	over   chan struct{} // closed when the time for a clean stop is up
	crew   crew          // sends

	claims  sync.WaitGroup // the loops that start work
	sending sync.WaitGroup // posts under way
	ending  sync.WaitGroup // the loop that stores outcomes
	stop    context.CancelFunc
	cut     context.CancelFunc
	stopped time.Time // when nothing more was claimed; zero before
}

// ended is an outcome to be stored, and how many posts of its organization are no longer under way with it.
type ended struct {
	publishingservice.Outcome
	posts int
}

// New makes a worker. It is the Dispatcher of the organizations' actors.
func New(cfg Config, deps Deps) *Worker {
	quiet := make(chan struct{})
	w := &Worker{cfg: cfg, deps: deps, free: cfg.InFlight, ready: make(chan struct{}, 1), sweep: make(chan struct{}, 1), finish: make(chan ended, 1024), quiet: quiet, over: make(chan struct{}), crew: newCrew(quiet)}
	w.limits = newLimits(cfg.Rates, deps.Caps, &limits{heads: deps.Publisher.Heads, bucket: deps.Bucket, clock: deps.Clock, log: deps.Log, wake: func(org tenancy.OrgID) {
		deps.Actors.Wake(context.Background(), org, time.Time{})
	}})
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
		w.rehearse(starting)
		w.claimLoop(starting, sending)
	})
	w.claims.Go(func() { w.sweepLoop(starting, sending) })
	w.ending.Go(w.finishLoop)
}

// rehearse is best before anything is due, and never in its way for long.
func (w *Worker) rehearse(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	if err := w.deps.Publisher.Rehearse(ctx); err != nil && ctx.Err() == nil {
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
		close(w.finish)
		w.ending.Wait()
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

// acquire takes a permit back after a wait.
func (w *Worker) acquire() {
	w.mu.Lock()
	w.free--
	w.mu.Unlock()
}

// width is how many organizations one claim looks at.
const width = 512

func (w *Worker) claimLoop(ctx, sending context.Context) {
	turn := w.newPace()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.ready:
		}
		turn.wait(ctx.Done(), w.waiting() >= width)
		for ctx.Err() == nil && w.claim(ctx, sending) {
			turn.done()
			turn.wait(ctx.Done(), w.waiting() >= width)
		}
	}
}

// waiting is how many organizations could be served now.
func (w *Worker) waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return min(w.turns.Len(), max(0, w.free))
}

// claim serves the next turns; false when nobody waits or nothing is free.
func (w *Worker) claim(ctx, sending context.Context) bool {
	w.mu.Lock()
	grants := w.turns.Take(max(0, w.free), width)
	held := 0
	wants := make([]publishingservice.Want, len(grants))
	for i, g := range grants {
		wants[i] = publishingservice.Want{Org: g.Org, Permits: g.Permits}
		held += g.Permits
	}
	w.free -= held
	w.mu.Unlock()
	if len(grants) == 0 {
		return false
	}
	lease := leaseOf(w.deps.Lease())
	asked := w.deps.Clock.Now()
	round, err := w.take(ctx, lease, wants)
	if err != nil {
		w.release(held)
		w.refuse(ctx, grants, err)
		return true
	}
	w.limits.taken(round.Claimed)
	w.release(held - len(round.Claimed))
	w.tell(grants, round, asked) // before the first of them can end: an actor counts up, then down
	w.start(sending, round)
	return true
}

// claimTime is what a claim may take. One that has begun is not cut off by a stop: what it took would belong to nobody until its time is over.
const claimTime = 5 * time.Second

func (w *Worker) take(ctx context.Context, lease publishingservice.Lease, wants []publishingservice.Want) (publishingservice.Round, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTime)
	defer cancel()
	limits, err := w.limits.open(ctx, lease, wants)
	if err != nil {
		return publishingservice.Round{}, err
	}
	return w.deps.Publisher.Claim(ctx, lease, wants, limits)
}

const refusedWait = time.Second

func (w *Worker) refuse(ctx context.Context, grants []order.Grant, err error) {
	if ctx.Err() == nil {
		w.deps.Log.Warn("nothing could be claimed", "error", err)
	}
	for _, g := range grants {
		w.deps.Actors.Refused(g.Org, refusedWait)
	}
}

func (w *Worker) tell(grants []order.Grant, round publishingservice.Round, asked time.Time) {
	claimed := map[tenancy.OrgID]int{}
	for _, c := range round.Claimed {
		claimed[c.Org]++
	}
	if !round.Now.IsZero() {
		w.deps.Actors.SetNow(round.Now, asked)
	}
	for _, g := range grants {
		if at, more := round.Next[g.Org]; more {
			w.deps.Actors.Granted(g.Org, claimed[g.Org], &at, round.Now)
		} else {
			w.deps.Actors.Granted(g.Org, claimed[g.Org], nil, round.Now)
		}
		if len(round.Held[g.Org]) > 0 {
			w.limits.hold(g.Org, round.Held[g.Org])
		}
	}
}

// start loads what was claimed, in one go, and sends each post by itself.
func (w *Worker) start(ctx context.Context, round publishingservice.Round) {
	if len(round.Claimed) == 0 {
		return
	}
	w.sending.Add(len(round.Claimed))
	go func() {
		works := w.load(ctx, round.Claimed)
		for _, c := range round.Claimed {
			work, ok := works[c.Post]
			w.deps.Metrics.claimed(c.Due, w.deps.Clock.Now())
			w.crew.do(func() { w.send(ctx, c, work, ok) })
		}
	}()
}

func (w *Worker) load(ctx context.Context, claimed []publishingservice.Claimed) map[publishing.PostID]publishingservice.Work {
	out := map[publishing.PostID]publishingservice.Work{}
	works, err := w.deps.Publisher.Load(ctx, claimed)
	if err != nil {
		w.deps.Log.Warn("claimed posts could not be loaded; they go back to the queue", "posts", len(claimed), "error", err)
	}
	for _, work := range works {
		out[work.Post] = work
	}
	return out
}

// send publishes one post and hands its outcome on. What could not be loaded goes back to the queue.
func (w *Worker) send(ctx context.Context, c publishingservice.Claimed, work publishingservice.Work, loaded bool) {
	defer w.sending.Done()
	out := publishingservice.Returned(c)
	if loaded && work.Token == c.Token {
		done := w.deps.Metrics.sending()
		work.Began = c.Began
		out = w.deps.Publisher.Send(ctx, work, w.yield)
		done(work.Channel.Connector, out.Result)
	}
	w.finish <- ended{out, 1}
	w.limits.done(c.Connector)
	w.release(1)
}

// ErrQuiet ends the waiting of a post when the process is about to stop.
var ErrQuiet = errors.New("the worker is stopping")

// yield waits without a permit.
func (w *Worker) yield(ctx context.Context, d time.Duration) error {
	w.release(1)
	defer w.acquire()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-w.quiet:
		return ErrQuiet
	case <-ctx.Done():
		return ctx.Err()
	}
}

func leaseOf(l cluster.Lease) publishingservice.Lease {
	return publishingservice.Lease{Holder: l.Holder, Shards: l.Shards, Epochs: l.Epochs}
}
