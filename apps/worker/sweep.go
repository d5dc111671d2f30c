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

// leastSweep is the least time from one sweep to the next, however many reasons there are for one.
const leastSweep = time.Second

func (w *Worker) sweepLoop(ctx, sending context.Context) {
	tick := time.NewTicker(w.cfg.Sweep)
	defer tick.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	var last woken
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
		last = w.look(ctx, sending, last)
		w.sweeping.end()
		rest.Reset(min(leastSweep, w.cfg.Sweep))
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

// look gives back what lost claims took, ends what is over, asks for unknown outcomes, and wakes the organizations
// that have something due. A part that fails is tried again with the next sweep and keeps no other from being done.
func (w *Worker) look(ctx, sending context.Context, last woken) woken {
	lease := w.deps.Lease()
	if len(lease.Shards) == 0 {
		return woken{}
	}
	next := last
	for _, part := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"give back lost claims", func(ctx context.Context) error { return w.giveBack(ctx, lease) }},
		{"end what is over", func(ctx context.Context) error { return w.maintain(ctx, lease) }},
		{"write next occurrences", func(ctx context.Context) error { return w.occurrences(ctx, lease) }},
		{"look up unknown outcomes", func(ctx context.Context) error { return w.doubts(ctx, sending, lease) }},
		{"wake organizations", func(ctx context.Context) error {
			began := w.deps.Clock.Now()
			if !last.over(lease, began) {
				return nil
			}
			next = woken{}
			if err := w.wake(ctx, lease); err != nil {
				return err
			}
			next = woken{lease, began, w.deps.Clock.Now()}
			return nil
		}},
	} {
		w.sweeping.begin()
		step, cancel := context.WithTimeout(ctx, sweepStep)
		if err := part.do(step); err != nil && ctx.Err() == nil {
			w.deps.Metrics.sweeps.Inc()
			w.deps.Log.Warn("a part of the sweep failed; it is tried again", "part", part.name, "error", err)
		}
		cancel()
	}
	return next
}

func (w *Worker) maintain(ctx context.Context, lease publishing.Lease) error {
	m, err := w.deps.Keeper.Maintain(ctx, lease)
	w.deps.Metrics.maintained(m)
	if m.More {
		w.SweepNow()
	}
	return err
}

// occurrences writes what follows in repeated posts.
func (w *Worker) occurrences(ctx context.Context, lease publishing.Lease) error {
	_, more, err := w.deps.Keeper.WriteOccurrences(ctx, lease)
	if more {
		w.SweepNow()
	}
	return err
}

// woken is when everybody of a lease was woken.
type woken struct {
	lease      publishing.Lease
	began, end time.Time
}

// over returns true when it is time to wake everybody again. That reads much of what is due, mostly to tell actors what
// they know: while very much is due it rests ten times as long as it took, at most a quarter of a minute. For shards that
// are new it never rests.
func (l woken) over(lease publishing.Lease, now time.Time) bool {
	rest := min(10*l.end.Sub(l.began), 15*time.Second)
	return !slices.Equal(lease.Shards, l.lease.Shards) || now.Sub(l.end) >= rest
}

// doubts asks for unknown outcomes, each beside the others.
func (w *Worker) doubts(ctx, sending context.Context, lease publishing.Lease) error {
	admitted := map[asker]int{}
	open, more, err := w.deps.Keeper.Doubts(ctx, lease, w.looks.resting(w.deps.Clock.Now()), func(f publishing.UnknownPost) bool {
		a := asker{f.Org, f.Place}
		if !w.looks.admit(a) {
			return false
		}
		admitted[a]++
		return true
	})
	for _, d := range open {
		if !d.Blind {
			admitted[asker{d.Org, d.Place}]--
		}
		w.sending.Add(1)
		go w.reconcile(sending, d)
	}
	for a, n := range admitted { // of posts that others have taken or that cannot be read
		for range n {
			w.looks.done(a, false, false, w.deps.Clock.Now())
		}
	}
	if more {
		w.SweepNow()
	}
	return err
}

func (w *Worker) reconcile(ctx context.Context, d sender.Doubt) {
	defer w.sending.Done()
	out, unanswered := w.deps.Keeper.Reconcile(ctx, d)
	if !d.Blind {
		w.looks.done(asker{d.Org, d.Place}, true, unanswered != nil, w.deps.Clock.Now())
	}
	w.deps.Metrics.reconciled(out.Result)
	w.finish.Add(&ended{Outcome: out})
}

func (w *Worker) wake(ctx context.Context, lease publishing.Lease) error {
	asked := w.deps.Clock.Now()
	next, now, err := w.deps.Keeper.Sweep(ctx, lease, sweepHorizon)
	if err != nil {
		return err
	}
	if !now.IsZero() {
		w.deps.Actors.SetNow(now, asked)
	}
	w.deps.Metrics.queued(next, now)
	for org, at := range next {
		if !w.places.waits(org) {
			w.deps.Actors.Wake(ctx, org, at)
		}
	}
	return nil
}
