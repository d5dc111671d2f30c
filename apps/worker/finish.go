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
	// finishBatch is the maximum number of outcomes in one statement.
	finishBatch = 512
	// finishBound is the maximum number of outcomes that wait to be stored. It is also the maximum
	// number of outcomes that are retried after the database has rejected them. Further rejected
	// outcomes are only logged.
	finishBound = 1024
	// finishGather is how long an outcome waits for others to be stored together with it. The wait
	// delays only the next post of the same channel.
	finishGather = 20 * time.Millisecond
	storeTimeout = 10 * time.Second
	// storePause is the longest pause between attempts.
	storePause = 2 * time.Second
	// lockedPause is the first pause before retrying an outcome whose rows are locked by another
	// transaction. It doubles with each attempt.
	lockedPause = 25 * time.Millisecond
	// asideEvery is the time between attempts to store an outcome that the database has rejected.
	asideEvery = time.Minute
)

type pendingOutcome struct {
	dispatch.Outcome
	// posts is the number of posts that are no longer in flight once the outcome is stored: 1 or 0.
	posts int
	// destination is the destination that the post is sent to. It is set if posts is 1.
	destination string
	// tries is the number of attempts to store the outcome that failed because of a lock or a
	// timeout.
	tries int
	// setAside is set once the database has rejected the outcome.
	setAside bool
}

// newFinish returns the batcher that stores outcomes. The batcher keeps an outcome until it has
// been stored:
//
//   - While the database cannot be reached, or lacks something that every statement needs, all
//     outcomes wait.
//   - An outcome that the database rejects is set aside and retried every minute.
//   - An outcome whose rows are locked by another transaction is retried without delaying others.
//   - An outcome whose statement times out is also retried, but other outcomes get most of the
//     batcher's time.
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

// onePerPost splits outcomes into now, which has one outcome per post, and rest. A statement must
// not contain two outcomes for the same post. A post has two outcomes if both its sender and a
// reconciliation have ended. If one of the two is a success, now contains the success.
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

// store stores outcomes in one statement and reports them to the actors. It returns the outcomes
// whose posts are locked. If the statement fails, store returns its error and reports no outcome.
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
			w.SweepNow() // the platform must be queried at once
		}
		if f.PublishedTwice {
			w.deps.Metrics.twice.Inc()
			w.deps.Log.Error("a platform has published a post twice; the timeline has both release ids",
				"org", f.Org, "post", f.Post)
		}
	}
	over := map[tenancy.OrgID]int{}
	// claims holds the organizations that have something to claim besides the posts for which they
	// are queued.
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

// storeAlone handles an outcome that could not be stored. It returns how long to wait before the
// next attempt. If the outcome's rows are locked or its statement timed out, storeAlone does
// nothing more.
//
// If the database rejected the outcome, storeAlone tries to store it without the texts from the
// platform, which are the usual cause. If that succeeds, it returns 0. Otherwise, it sets the
// outcome aside: the organization continues with other posts, and the post's timeline shows the
// cause.
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
