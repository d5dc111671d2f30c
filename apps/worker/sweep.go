package worker

import (
	"context"
	"time"

	publishingservice "crier/publishing/service"
)

// sweepHorizon is how far ahead a sweep wakes organizations; their own timers do the rest.
const sweepHorizon = time.Minute

func (w *Worker) sweepLoop(ctx, sending context.Context) {
	tick := time.NewTicker(w.cfg.Sweep)
	defer tick.Stop()
	for {
		w.look(ctx, sending)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-w.sweep:
		}
	}
}

// look ends what is over, asks after what is doubtful, and wakes whoever has something due.
func (w *Worker) look(ctx, sending context.Context) {
	lease := leaseOf(w.deps.Lease())
	if len(lease.Shards) == 0 {
		return
	}
	expired, reaped, err := w.deps.Keeper.Tend(ctx, lease)
	if err == nil {
		w.deps.Metrics.tended(expired, reaped)
		err = w.doubts(ctx, sending, lease)
	}
	if err == nil {
		err = w.wake(ctx, lease)
	}
	if err != nil && ctx.Err() == nil {
		w.deps.Log.Warn("the sweep failed; it is tried again", "error", err)
	}
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
