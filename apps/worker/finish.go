package worker

import (
	"context"
	"time"

	"crier/platform/pg"
	"crier/publishing"
	publishingservice "crier/publishing/service"
	"crier/tenancy"
)

// batch is how many outcomes go into one statement.
const batch = 512

// finishLoop stores outcomes, as many at once as have come in meanwhile. No outcome is dropped before it is stored.
func (w *Worker) finishLoop() {
	turn := w.newPace()
	for first := range w.finish {
		turn.wait(w.over, len(w.finish) >= batch)
		outcomes := []ended{first}
		for len(outcomes) < batch && len(w.finish) > 0 {
			outcomes = append(outcomes, <-w.finish)
		}
		w.store(outcomes)
		turn.done()
	}
}

const (
	storeTimeout = 10 * time.Second
	storePause   = 2 * time.Second // the longest, between tries
)

// store repeats until the database has taken the outcomes, however long it is away. A batch that the database itself refuses is stored row by row.
func (w *Worker) store(all []ended) {
	outcomes := make([]publishingservice.Outcome, len(all))
	for i, e := range all {
		outcomes[i] = e.Outcome
	}
	for try := 1; ; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		finished, err := w.deps.Publisher.Finish(ctx, outcomes)
		cancel()
		switch {
		case err == nil:
			w.finished(all, finished)
			return
		case pg.IsRefused(err) && len(all) > 1:
			for i := range all {
				w.store(all[i : i+1])
			}
			return
		case pg.IsRefused(err):
			w.lose(all, err) // the same would be refused for ever; the claim's end finds the post
			return
		}
		w.deps.Log.Error("outcomes cannot be stored yet", "posts", len(outcomes), "try", try, "error", err)
		pause := time.NewTimer(min(storePause, time.Duration(try)*100*time.Millisecond))
		select {
		case <-pause.C:
		case <-w.over:
			pause.Stop()
			w.lose(all, err)
			return
		}
	}
}

// lose says in the log what could not be said in the database, so that nobody has to guess what is out.
func (w *Worker) lose(all []ended, err error) {
	for _, e := range all {
		w.deps.Metrics.lost()
		w.deps.Log.Error("an outcome could not be stored; it is looked up when its claim ends", "org", e.Org, "post", e.Post, "token", e.Token, "result", e.Result, "releaseId", e.ReleaseID, "error", err)
		w.deps.Actors.Done(e.Org, e.posts)
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
