package worker

import (
	"context"
	"slices"
	"time"

	publishingservice "crier/publishing/service"
)

// sweepHorizon is how far ahead a sweep wakes organizations; their own timers do the rest.
const sweepHorizon = time.Minute

func (w *Worker) sweepLoop(ctx, sending context.Context) {
	tick := time.NewTicker(w.cfg.Sweep)
	defer tick.Stop()
	var last woken
	for {
		last = w.look(ctx, sending, last)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-w.sweep:
		}
	}
}

// look ends what is over, asks after what is doubtful, and wakes whoever has something due.
func (w *Worker) look(ctx, sending context.Context, last woken) woken {
	lease := leaseOf(w.deps.Lease())
	if len(lease.Shards) == 0 {
		return last
	}
	expired, reaped, err := w.deps.Keeper.Tend(ctx, lease)
	if err == nil {
		w.deps.Metrics.tended(expired, reaped)
		err = w.doubts(ctx, sending, lease)
	}
	if began := w.deps.Clock.Now(); err == nil && last.over(lease, began) {
		err = w.wake(ctx, lease)
		last = woken{lease, began, w.deps.Clock.Now()}
	}
	if err != nil && ctx.Err() == nil {
		w.deps.Log.Warn("the sweep failed; it is tried again", "error", err)
		return woken{}
	}
	return last
}

// woken is when everybody of a lease was woken.
type woken struct {
	lease      publishingservice.Lease
	began, end time.Time
}

// over tells whether it is time to wake everybody again. That reads all that is due, mostly to tell actors what they know: while very much is due it rests
// ten times as long as it took, at most a quarter of a minute. For shards that are new it never rests.
func (l woken) over(lease publishingservice.Lease, now time.Time) bool {
	rest := min(10*l.end.Sub(l.began), 15*time.Second)
	return !slices.Equal(lease.Shards, l.lease.Shards) || !slices.Equal(lease.Epochs, l.lease.Epochs) || now.Sub(l.end) >= rest
}

func (w *Worker) doubts(ctx, sending context.Context, lease publishingservice.Lease) error {
	open, err := w.deps.Keeper.Doubts(ctx, lease)
	if len(open) >= publishingservice.LookBatch {
		w.SweepNow() // a whole process may be in doubt
	}
	for _, d := range open {
		w.sending.Add(1)
		go func() {
			defer w.sending.Done()
			out := w.deps.Keeper.Reconcile(sending, d)
			w.deps.Metrics.reconciled(out.Result)
			w.finish <- ended{out, 0}
		}()
	}
	return err
}

func (w *Worker) wake(ctx context.Context, lease publishingservice.Lease) error {
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
		w.deps.Actors.Wake(ctx, org, at)
	}
	return nil
}
