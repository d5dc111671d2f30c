package worker

import (
	"context"
	"time"

	"crier/publishing"
	publishingservice "crier/publishing/service"
	"crier/tenancy"
)

// batch is how many outcomes go into one statement.
const batch = 100

// finishLoop stores outcomes, as many at once as have come in meanwhile. No outcome is dropped before it is stored.
func (w *Worker) finishLoop() {
	for first := range w.finish {
		outcomes := []ended{first}
		for len(outcomes) < batch && len(w.finish) > 0 {
			outcomes = append(outcomes, <-w.finish)
		}
		w.store(outcomes)
	}
}

const (
	storeTimeout = 10 * time.Second
	storeTries   = 30
)

// store repeats until the database has taken the outcomes; a batch that keeps failing is stored row by row.
func (w *Worker) store(all []ended) {
	outcomes := make([]publishingservice.Outcome, len(all))
	for i, e := range all {
		outcomes[i] = e.Outcome
	}
	for try := 1; ; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		finished, err := w.deps.Publisher.Finish(ctx, outcomes)
		cancel()
		if err == nil {
			w.finished(all, finished)
			return
		}
		w.deps.Log.Error("outcomes could not be stored", "posts", len(outcomes), "try", try, "error", err)
		if len(outcomes) > 1 && try >= 3 {
			for _, e := range all {
				w.store([]ended{e})
			}
			return
		}
		if try >= storeTries {
			w.deps.Metrics.lost()
			w.deps.Actors.Done(all[0].Org, all[0].posts)
			return
		}
		time.Sleep(time.Duration(min(try, 10)) * 100 * time.Millisecond)
	}
}

// finished tells the actors, and looks at once at what is doubtful.
func (w *Worker) finished(outcomes []ended, stored []publishingservice.Finished) {
	kept := map[publishing.PostID]bool{}
	for _, f := range stored {
		kept[f.Post] = true
		if f.State == publishing.StateUnknown {
			w.SweepNow()
		}
	}
	over := map[tenancy.OrgID]int{}
	for _, o := range outcomes {
		over[o.Org] += o.posts
		if !kept[o.Post] {
			w.deps.Metrics.stale()
			w.deps.Log.Warn("an outcome came after its claim had ended", "post", o.Post, "result", o.Result)
		}
	}
	for org, n := range over {
		w.deps.Actors.Done(org, n)
	}
}
