package worker

import (
	"context"
	"slices"
	"time"

	"crier/publishing"
	"crier/publishing/scheduler"
)

// sweepHorizon is how far ahead a sweep wakes organizations, which then set their timers.
const sweepHorizon = time.Minute

// minSweepGap is the shortest time between two sweeps.
const minSweepGap = time.Second

func (w *Worker) sweepLoop(ctx, sending context.Context) {
	tick := time.NewTicker(w.cfg.SweepInterval)
	defer tick.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	var last wakeRound
	select {
	case <-w.sweep: // the first sweep is at once
	default:
	}
	for {
		select {
		case <-rest.C:
		case <-ctx.Done():
			return
		}
		last = w.runSweep(ctx, sending, last)
		w.sweeping.end()
		rest.Reset(min(minSweepGap, w.cfg.SweepInterval))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-w.sweep:
		}
	}
}

// sweepStep is the deadline of one part of a sweep. Each of its statements has a shorter one.
const sweepStep = time.Minute

// runSweep gives back lost claims, does the upkeep of posts, writes next occurrences, reconciles unknown outcomes, and
// wakes the organizations that have something due. A part that fails is done again by the next sweep; the other parts
// are done nevertheless.
func (w *Worker) runSweep(ctx, sending context.Context, last wakeRound) wakeRound {
	lease := w.deps.Lease()
	if len(lease.Shards) == 0 {
		return wakeRound{}
	}
	next := last
	for _, part := range []struct {
		name string
		do   func(context.Context) error
	}{
		{name: "give back lost claims", do: func(ctx context.Context) error { return w.giveBack(ctx, lease) }},
		{name: "end what is over", do: func(ctx context.Context) error { return w.maintain(ctx, lease) }},
		{name: "write next occurrences", do: func(ctx context.Context) error { return w.writeOccurrences(ctx, lease) }},
		{name: "look up unknown outcomes", do: func(ctx context.Context) error {
			return w.reconcileUnknown(ctx, sending, lease)
		}},
		{name: "wake organizations", do: func(ctx context.Context) error {
			began := w.deps.Clock.Now()
			if !last.isDue(lease, began) {
				return nil
			}
			next = wakeRound{}
			if err := w.wakeDue(ctx, lease); err != nil {
				return err
			}
			next = wakeRound{lease: lease, began: began, end: w.deps.Clock.Now()}
			return nil
		}},
	} {
		w.sweeping.begin()
		step, cancel := context.WithTimeout(ctx, sweepStep)
		if err := part.do(step); err != nil && ctx.Err() == nil {
			w.deps.Metrics.sweepFailures.Inc()
			w.deps.Log.Warn("a part of the sweep failed; it is tried again", "part", part.name, "error", err)
		}
		cancel()
	}
	return next
}

func (w *Worker) maintain(ctx context.Context, lease publishing.Lease) error {
	m, err := w.deps.Maintainer.Maintain(ctx, lease)
	w.deps.Metrics.maintained(m)
	if m.More {
		w.SweepNow()
	}
	return err
}

func (w *Worker) writeOccurrences(ctx context.Context, lease publishing.Lease) error {
	_, more, err := w.deps.Maintainer.WriteOccurrences(ctx, lease)
	if more {
		w.SweepNow()
	}
	return err
}

// wakeRound is when all organizations of a lease were woken.
type wakeRound struct {
	lease      publishing.Lease
	began, end time.Time
}

// isDue reports whether it is time to wake all organizations again. Waking reads most of what is due, which the actors
// usually know already: so the pause after it is ten times as long as it took, at most 15 seconds. There is no pause
// when the shards of the lease have changed.
func (l wakeRound) isDue(lease publishing.Lease, now time.Time) bool {
	rest := min(10*l.end.Sub(l.began), 15*time.Second)
	return !slices.Equal(lease.Shards, l.lease.Shards) || now.Sub(l.end) >= rest
}

// reconcileUnknown starts the reconciliations and does not wait for them. Stop does.
func (w *Worker) reconcileUnknown(ctx, sending context.Context, lease publishing.Lease) error {
	admitted := map[reconcileKey]int{}
	resting := w.reconciles.resting(w.deps.Clock.Now())
	open, more, err := w.deps.Maintainer.ClaimUnknown(ctx, lease, resting, func(f publishing.UnknownPost) bool {
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
	for a, n := range admitted { // those of posts that another process has claimed or that cannot be read
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

func (w *Worker) wakeDue(ctx context.Context, lease publishing.Lease) error {
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
