package worker

import (
	"context"
	"errors"
	"time"

	"crier/platform/batch"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/scheduler"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

const (
	// finishBatch is the largest number of outcomes in one statement.
	finishBatch = 512
	// finishBound bounds the outcomes that wait for a statement, and also those that the database
	// has refused. Refused outcomes beyond the bound are only logged.
	finishBound = 1024
	// finishGather is how long a statement waits for more outcomes. Only the next post of a channel
	// is delayed by it.
	finishGather = 20 * time.Millisecond
	storeTimeout = 10 * time.Second
	// storePause is the longest pause between two attempts.
	storePause = 2 * time.Second
	// lockedPause is the first pause before retrying an outcome whose rows another transaction has
	// locked. It doubles with each attempt.
	lockedPause = 25 * time.Millisecond
	// asideEvery is the time between two attempts to store an outcome that the database has
	// refused.
	asideEvery = time.Minute
)

type pendingOutcome struct {
	dispatch.Outcome
	// posts is the number of posts that are no longer in flight once the outcome is stored: 1 or 0.
	posts int
	// destination is where the calls of the post go. It is set if posts is not 0.
	destination string
	// tries counts the attempts that met a lock or timed out.
	tries int
	// setAside is set once the database has refused the outcome.
	setAside bool
}

// newFinish returns the batcher of outcomes. No outcome is dropped before it is stored:
//
//   - While the database is away, or lacks something that every statement needs, all outcomes wait.
//   - An outcome that the database refuses is set aside and retried every minute.
//   - An outcome whose rows another transaction has locked is retried; the others do not wait for
//     it.
//   - An outcome whose statement times out is retried too, and leaves most of the time to the
//     others.
func (w *Worker) newFinish() *batch.Batcher[*pendingOutcome] {
	return batch.New(batch.Rules[*pendingOutcome]{
		MaxItems: finishBatch, MaxWaiting: finishBound, Gather: finishGather, Timeout: storeTimeout,
		Stop: w.stopExpired,
		Pick: onePerPost, Do: w.store, Refused: pg.IsRefused, Locked: pg.IsLocked, ItemFailed: w.storeAlone,
		GiveUp: w.reportLost,
		CallFailed: func(outcomes, try int, err error) time.Duration {
			w.deps.Log.Error("outcomes could not be stored; retrying", "posts", outcomes, "try", try, "error", err)
			return min(storePause, time.Duration(try)*100*time.Millisecond)
		},
		Begin: w.finishing.Begin, End: w.finishing.End,
	})
}

// onePerPost splits outcomes into one per post, because a statement must not have two for the same
// post, and the rest. A post has two if its sender and a reconciliation both ended; a success then
// comes first.
func onePerPost(all []*pendingOutcome) (now, rest []*pendingOutcome) {
	at := map[publishing.PostID]int{}
	for _, e := range all {
		i, seen := at[e.Post]
		switch {
		case !seen:
			at[e.Post] = len(now)
			now = append(now, e)
		case e.Result == dispatch.ResultPublished && now[i].Result != dispatch.ResultPublished:
			now[i], rest = e, append(rest, now[i])
		default:
			rest = append(rest, e)
		}
	}
	return now, rest
}

// store stores outcomes in one statement, reports them to the actors, and returns those whose posts
// are locked. If it returns the error of the statement, no outcome was reported.
func (w *Worker) store(ctx context.Context, some []*pendingOutcome) (locked []*pendingOutcome, err error) {
	outcomes := make([]dispatch.Outcome, len(some))
	for i, e := range some {
		outcomes[i] = e.Outcome
	}
	stored, err := w.deps.Publisher.Finish(ctx, outcomes)
	if err != nil {
		return nil, err
	}
	found := map[publishing.PostID]dispatch.Finished{}
	for _, f := range stored {
		found[f.Post] = f
		if f.State == publishing.StateUnknown && !f.Locked {
			w.SweepNow() // its platform must be asked at once
		}
		if f.PublishedTwice {
			w.deps.Metrics.twice.Inc()
			w.deps.Log.Error("a platform has published a post twice; the timeline has both release ids",
				"org", f.Org, "post", f.Post)
		}
	}
	over := map[tenancy.OrgID]int{}
	// claims has the organizations with something to claim besides what they wait for in lines.
	claims := map[tenancy.OrgID]bool{}
	for _, e := range some {
		f := found[e.Post]
		if f.Locked {
			locked = append(locked, e)
			continue
		}
		over[e.Org] += e.posts
		if e.posts > 0 && (e.Result != dispatch.ResultPublished || !w.destinations.join(e.destination, e.Org)) {
			claims[e.Org] = true
		}
		if f.State == "" {
			w.deps.Metrics.stale.Inc()
			w.deps.Log.Warn("an outcome arrived after its claim had ended",
				"post", e.Post, "result", e.Result, "releaseId", e.ReleaseID)
		}
	}
	for org, n := range over {
		w.deps.Actors.Done(org, n, n > 0 && !claims[org])
	}
	return locked, nil
}

// storeAlone handles an outcome that could not be stored and returns the time until it is retried.
// It only delays an outcome whose rows are locked or whose statement timed out.
//
// It stores a refused outcome without the texts of the platform, which are the usual cause, and
// returns 0. An outcome that is refused even so is set aside: its organization continues, and the
// timeline of its post shows the cause.
func (w *Worker) storeAlone(e *pendingOutcome, cause error) time.Duration {
	if !pg.IsRefused(cause) {
		if e.tries++; !pg.IsLocked(cause) && !errors.Is(cause, batch.ErrLocked) {
			w.report(e, "an outcome took too long to store; it is retried separately", cause)
		}
		return min(storePause, lockedPause<<min(e.tries-1, 10))
	}
	if w.storeWithoutTexts(e) {
		return 0
	}
	if !e.setAside {
		w.setAside(e, cause)
	}
	return asideEvery
}

func (w *Worker) storeWithoutTexts(e *pendingOutcome) bool {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	bare := *e
	bare.Outcome = scheduler.WithoutTexts(e.Outcome)
	locked, err := w.store(ctx, []*pendingOutcome{&bare})
	if err != nil || len(locked) > 0 {
		return false
	}
	w.deps.Log.Error("an outcome was stored without its texts, which the database refuses",
		"post", e.Post, "releaseId", e.ReleaseID, "text", e.Error)
	return true
}

func (w *Worker) setAside(e *pendingOutcome, cause error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	w.deps.Metrics.refused.Inc()
	if err := w.deps.Publisher.SetAside(ctx, e.Outcome, cause); err != nil {
		w.deps.Log.Warn("an outcome's refusal could not be written to its post's timeline",
			"post", e.Post, "error", err)
	}
	w.report(e, "the database refused an outcome; it is retried every minute", cause)
	w.deps.Actors.Done(e.Org, e.posts, false)
	e.setAside, e.posts = true, 0
}

// reportLost logs an outcome that could not be stored, so that the log shows what was published.
func (w *Worker) reportLost(e *pendingOutcome, err error) {
	w.deps.Metrics.lost.Inc()
	w.report(e, "an outcome could not be stored; it is reconciled when its claim ends", err)
	w.deps.Actors.Done(e.Org, e.posts, false)
}

func (w *Worker) report(e *pendingOutcome, message string, err error) {
	w.deps.Log.Error(message, "org", e.Org, "post", e.Post, "token", e.Token, "result", e.Result,
		"releaseId", e.ReleaseID, "error", err)
}
