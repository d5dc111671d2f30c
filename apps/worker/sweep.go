package worker

import (
	"context"
	"slices"
	"time"

	"crier/publishing"
	"crier/publishing/sender"
)

// sweepHorizon is how far ahead a sweep wakes organizations; their own timers do the rest.
const sweepHorizon = time.Minute

// minSweepGap is the least time from one sweep to the next, however many reasons there are for one.
const minSweepGap = time.Second

func (w *Worker) sweepLoop(ctx, sending context.Context) {
	tick := time.NewTicker(w.cfg.Sweep)
	defer tick.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	var last wakeRound
	select {
	case <-w.sweep: // asked for before the first sweep, which is at once
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
		rest.Reset(min(minSweepGap, w.cfg.Sweep))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-w.sweep:
		}
	}
}

// sweepStep is the deadline of one part of a sweep. Each of its statements has one of its own.
const sweepStep = time.Minute

// runSweep gives back what lost claims took, ends what is over, asks for unknown outcomes, and wakes the organizations
// that have something due. A part that fails is tried again with the next sweep and keeps no other from being done.
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
		{"give back lost claims", func(ctx context.Context) error { return w.giveBack(ctx, lease) }},
		{"end what is over", func(ctx context.Context) error { return w.maintain(ctx, lease) }},
		{"write next occurrences", func(ctx context.Context) error { return w.writeOccurrences(ctx, lease) }},
		{"look up unknown outcomes", func(ctx context.Context) error { return w.reconcileUnknown(ctx, sending, lease) }},
		{"wake organizations", func(ctx context.Context) error {
			began := w.deps.Clock.Now()
			if !last.isDue(lease, began) {
				return nil
			}
			next = wakeRound{}
			if err := w.wakeDue(ctx, lease); err != nil {
				return err
			}
			next = wakeRound{lease, began, w.deps.Clock.Now()}
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

// writeOccurrences writes what follows in repeated posts.
func (w *Worker) writeOccurrences(ctx context.Context, lease publishing.Lease) error {
	_, more, err := w.deps.Maintainer.WriteOccurrences(ctx, lease)
	if more {
		w.SweepNow()
	}
	return err
}

// wakeRound is when everybody of a lease was woken.
type wakeRound struct {
	lease      publishing.Lease
	began, end time.Time
}

// isDue returns true when it is time to wake everybody again. That reads much of what is due, mostly to tell actors what
// they know: while very much is due it rests ten times as long as it took, at most a quarter of a minute. For shards that
// are new it never rests.
func (l wakeRound) isDue(lease publishing.Lease, now time.Time) bool {
	rest := min(10*l.end.Sub(l.began), 15*time.Second)
	return !slices.Equal(lease.Shards, l.lease.Shards) || now.Sub(l.end) >= rest
}

// reconcileUnknown asks for unknown outcomes, each beside the others.
func (w *Worker) reconcileUnknown(ctx, sending context.Context, lease publishing.Lease) error {
	admitted := map[reconcileKey]int{}
	open, more, err := w.deps.Maintainer.ClaimUnknown(ctx, lease, w.reconciles.resting(w.deps.Clock.Now()), func(f publishing.UnknownPost) bool {
		a := reconcileKey{f.Org, f.Destination}
		if !w.reconciles.admit(a) {
			return false
		}
		admitted[a]++
		return true
	})
	for _, d := range open {
		if !d.SkipPlatform {
			admitted[reconcileKey{d.Org, d.Destination}]--
		}
		w.sending.Add(1)
		go w.reconcile(sending, d)
	}
	for a, n := range admitted { // of posts that others have taken or that cannot be read
		for range n {
			w.reconciles.done(a, false, false, w.deps.Clock.Now())
		}
	}
	if more {
		w.SweepNow()
	}
	return err
}

func (w *Worker) reconcile(ctx context.Context, d sender.Unknown) {
	defer w.sending.Done()
	out, unanswered := w.deps.Maintainer.Reconcile(ctx, d)
	if !d.SkipPlatform {
		w.reconciles.done(reconcileKey{d.Org, d.Destination}, true, unanswered != nil, w.deps.Clock.Now())
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
