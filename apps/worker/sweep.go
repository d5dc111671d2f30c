package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"crier/platform/lifecycle"
	"crier/publishing/scheduler"
	"crier/publishing/scheduler/dispatch"
)

// sweepHorizon is how far into the future a sweep looks for posts. The organizations that it wakes
// then set their timers.
const sweepHorizon = time.Minute

// minSweepGap is the shortest time between two sweeps.
const minSweepGap = time.Second

// sweepStep is the time limit for one step of a sweep. Each statement in the step has a shorter
// limit.
const sweepStep = time.Minute

func (w *Worker) newSweeper() *lifecycle.Loop {
	return lifecycle.NewLoop(lifecycle.LoopRules{
		Interval: w.cfg.SweepInterval, Ticks: true, Gap: min(minSweepGap, w.cfg.SweepInterval), Timeout: sweepStep,
		Watchdog: &w.sweeping,
		Failed: func(ctx context.Context, err error) {
			w.deps.Metrics.sweepFailures.Inc()
			w.deps.Log.WarnContext(ctx, "a step of the sweep failed; the next sweep repeats it", "error", err)
		},
	})
}

// sweep holds the state that the steps of a sweep share.
type sweep struct {
	*Worker
	lease    dispatch.Lease
	lastWake wakeRound
}

// sweepSteps returns the steps of a sweep: give back lost claims, maintain posts, write next
// occurrences, reconcile unknown outcomes, and wake the organizations that have something due. If a
// step fails, the other steps still run, and the next sweep repeats the failed step.
func (w *Worker) sweepSteps(sending context.Context) []lifecycle.Step {
	s := &sweep{Worker: w}
	return []lifecycle.Step{
		s.begin,
		s.part("give back lost claims", w.giveBack),
		s.part("maintain posts", w.maintain),
		s.part("write next occurrences", w.writeOccurrences),
		s.part("reconcile unknown outcomes", func(ctx context.Context, lease dispatch.Lease) error {
			return w.reconcileUnknown(ctx, sending, lease)
		}),
		s.part("wake organizations", s.wakeIfDue),
	}
}

// begin reads which shards this sweep covers.
func (s *sweep) begin(context.Context) (more bool, err error) {
	if s.lease = s.deps.Lease(); len(s.lease.Shards) == 0 {
		s.lastWake = wakeRound{}
	}
	return false, nil
}

// part returns a step that calls do if this process owns any shards. The step's errors begin with
// name.
func (s *sweep) part(name string, do func(context.Context, dispatch.Lease) error) lifecycle.Step {
	return func(ctx context.Context) (more bool, err error) {
		if len(s.lease.Shards) == 0 {
			return false, nil
		}
		if err := do(ctx, s.lease); err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		return false, nil
	}
}

func (s *sweep) wakeIfDue(ctx context.Context, lease dispatch.Lease) error {
	began := s.deps.Clock.Now()
	if !s.lastWake.isDue(lease, began) {
		return nil
	}
	s.lastWake = wakeRound{}
	if err := s.wakeDue(ctx, lease); err != nil {
		return err
	}
	s.lastWake = wakeRound{lease: lease, began: began, end: s.deps.Clock.Now()}
	return nil
}

func (w *Worker) maintain(ctx context.Context, lease dispatch.Lease) error {
	m, err := w.deps.Maintainer.Maintain(ctx, lease)
	w.deps.Metrics.maintained(m)
	if m.More {
		w.SweepNow()
	}
	return err
}

func (w *Worker) writeOccurrences(ctx context.Context, lease dispatch.Lease) error {
	_, more, err := w.deps.Maintainer.WriteOccurrences(ctx, lease)
	if more {
		w.SweepNow()
	}
	return err
}

// wakeRound records when all organizations covered by a lease were last woken.
type wakeRound struct {
	lease      dispatch.Lease
	began, end time.Time
}

// isDue reports whether it is time to wake all organizations again. A round of wake-ups reads most
// of the due posts, although the actors usually know about them already. The pause after a round is
// therefore ten times as long as the round took, but at most 15 seconds. If the lease's shards have
// changed, there is no pause.
func (l wakeRound) isDue(lease dispatch.Lease, now time.Time) bool {
	rest := min(10*l.end.Sub(l.began), 15*time.Second)
	return !slices.Equal(lease.Shards, l.lease.Shards) || now.Sub(l.end) >= rest
}

// reconcileUnknown starts reconciliations without waiting for them to end; Stop waits for them.
func (w *Worker) reconcileUnknown(ctx, sending context.Context, lease dispatch.Lease) error {
	admitted := map[reconcileKey]int{}
	resting := w.reconciles.resting(w.deps.Clock.Now())
	open, more, err := w.deps.Maintainer.ClaimUnknown(ctx, lease, resting, func(f dispatch.UnknownPost) bool {
		a := reconcileKey{org: f.Org, destination: f.Destination}
		if !w.reconciles.admit(a) {
			return false
		}
		admitted[a]++
		return true
	})
	for _, d := range open {
		if !d.SkipPlatform {
			admitted[reconcileKey{org: d.Org, destination: d.Destination}]--
		}
		w.sending.Add(1)
		go w.reconcile(sending, d)
	}
	// Release the slots of posts that another process has claimed or that cannot be read.
	for a, n := range admitted {
		for range n {
			w.reconciles.done(a, false, false, w.deps.Clock.Now())
		}
	}
	if more {
		w.SweepNow()
	}
	return err
}

func (w *Worker) reconcile(ctx context.Context, d scheduler.Unknown) {
	defer w.sending.Done()
	out, unanswered := w.deps.Maintainer.Reconcile(ctx, d)
	if !d.SkipPlatform {
		w.reconciles.done(reconcileKey{
			org: d.Org, destination: d.Destination,
		}, true, unanswered != nil, w.deps.Clock.Now())
	}
	w.deps.Metrics.reconciled(out.Result)
	w.finish.Add(&pendingOutcome{Outcome: out})
}

func (w *Worker) wakeDue(ctx context.Context, lease dispatch.Lease) error {
	asked := w.deps.Clock.Now()
	next, now, err := w.deps.Maintainer.Sweep(ctx, lease, sweepHorizon)
	if err != nil {
		return err
	}
	if !now.IsZero() {
		w.deps.Actors.SetNow(now, asked)
	}
	w.deps.Metrics.queued(next, now)
	for org, at := range next {
		if !w.destinations.isWaiting(org) {
			w.deps.Actors.Wake(ctx, org, at)
		}
	}
	return nil
}
