package worker

import (
	"context"
	"errors"
	"time"

	"crier/platform/batch"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/sender"
	"crier/tenancy"
)

const (
	finishBatch  = 512                   // outcomes in one statement
	finishBound  = 1024                  // outcomes that wait for one, and outcomes that the database refused; more of those are only logged
	finishGather = 20 * time.Millisecond // nobody waits for it but the next post of the channel
	storeTimeout = 10 * time.Second
	storePause   = 2 * time.Second       // the longest, between tries
	lockedPause  = 25 * time.Millisecond // until an outcome whose rows another transaction has locked is stored again; it doubles
	asideEvery   = time.Minute           // how often outcomes that the database refused are tried again
)

// pendingOutcome is an outcome to be stored, and how many posts of its organization are no longer under way with it.
type pendingOutcome struct {
	publishing.Outcome
	posts       int
	destination string // the destination of the post's calls, if posts is not 0
	tries       int    // that met a lock or ran out of time
	setAside    bool   // the database has refused it
}

// newFinish makes the batcher of outcomes. No outcome is dropped before it is stored: while the database is away, or
// something is missing that every statement needs, all of them wait; one that the database refuses is set aside and
// tried again each minute, and one whose rows another transaction has locked is tried again, each beside the others; one
// whose statement runs out of time each time is tried again too, and leaves most of the time to the others.
func (w *Worker) newFinish() *batch.Batcher[*pendingOutcome] {
	return batch.New(batch.Rules[*pendingOutcome]{
		MaxItems: finishBatch, MaxWaiting: finishBound, Gather: finishGather, Timeout: storeTimeout, Stop: w.stopExpired,
		Pick: onePerPost, Do: w.store, Refused: pg.IsRefused, Locked: pg.IsLocked, ItemFailed: w.storeAlone, GiveUp: w.reportLost,
		CallFailed: func(outcomes, try int, err error) time.Duration {
			w.deps.Log.Error("outcomes cannot be stored yet", "posts", outcomes, "try", try, "error", err)
			return min(storePause, time.Duration(try)*100*time.Millisecond)
		},
		Begin: w.finishing.begin, End: w.finishing.end,
	})
}

// onePerPost takes one outcome of each post, because a statement must not have two. Of a post with two, that of its sender
// and that of a look-up, it takes a success first.
func onePerPost(all []*pendingOutcome) (now, rest []*pendingOutcome) {
	at := map[publishing.PostID]int{}
	for _, e := range all {
		i, seen := at[e.Post]
		switch {
		case !seen:
			at[e.Post] = len(now)
			now = append(now, e)
		case e.Result == publishing.ResultPublished && now[i].Result != publishing.ResultPublished:
			now[i], rest = e, append(rest, now[i])
		default:
			rest = append(rest, e)
		}
	}
	return now, rest
}

// store stores outcomes in one statement, reports them to the actors, and returns those whose posts are locked.
func (w *Worker) store(ctx context.Context, some []*pendingOutcome) (locked []*pendingOutcome, err error) {
	outcomes := make([]publishing.Outcome, len(some))
	for i, e := range some {
		outcomes[i] = e.Outcome
	}
	stored, err := w.deps.Publisher.Finish(ctx, outcomes)
	if err != nil {
		return nil, err
	}
	found := map[publishing.PostID]publishing.Finished{}
	for _, f := range stored {
		found[f.Post] = f
		if f.State == publishing.StateUnknown && !f.Locked {
			w.SweepNow() // it is looked up at once
		}
		if f.PublishedTwice {
			w.deps.Metrics.twice.Inc()
			w.deps.Log.Error("a platform has published a post twice; the timeline has both release ids", "org", f.Org, "post", f.Post)
		}
	}
	over, claims := map[tenancy.OrgID]int{}, map[tenancy.OrgID]bool{} // claims: has more to claim than what it waits for in lines
	for _, e := range some {
		f := found[e.Post]
		if f.Locked {
			locked = append(locked, e)
			continue
		}
		over[e.Org] += e.posts
		if e.posts > 0 && (e.Result != publishing.ResultPublished || !w.destinations.join(e.destination, e.Org)) {
			claims[e.Org] = true
		}
		if f.State == "" {
			w.deps.Metrics.stale.Inc()
			w.deps.Log.Warn("an outcome came after its claim had ended", "post", e.Post, "result", e.Result, "releaseId", e.ReleaseID)
		}
	}
	for org, n := range over {
		w.deps.Actors.Done(org, n, n > 0 && !claims[org])
	}
	return locked, nil
}

// storeAlone returns when an outcome is tried again whose rows are locked, whose statement runs out of time, or which the
// database refuses even without the texts of the platform: those are what it is refused for as a rule. The organization
// of a refused one may go on, and its post says why it does not.
func (w *Worker) storeAlone(e *pendingOutcome, cause error) time.Duration {
	if !pg.IsRefused(cause) {
		if e.tries++; !pg.IsLocked(cause) && !errors.Is(cause, batch.ErrLocked) {
			w.report(e, "an outcome takes too long to store; it is tried again beside the others", cause)
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
	bare.Outcome = sender.WithoutTexts(e.Outcome)
	locked, err := w.store(ctx, []*pendingOutcome{&bare})
	if err != nil || len(locked) > 0 {
		return false
	}
	w.deps.Log.Error("an outcome was stored without its texts, which the database refuses", "post", e.Post, "releaseId", e.ReleaseID, "said", e.Error)
	return true
}

func (w *Worker) setAside(e *pendingOutcome, cause error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	w.deps.Metrics.refused.Inc()
	if err := w.deps.Publisher.SetAside(ctx, e.Outcome, cause); err != nil {
		w.deps.Log.Warn("the timeline of a post cannot say that its outcome is refused", "post", e.Post, "error", err)
	}
	w.report(e, "the database refuses an outcome; it is tried again each minute", cause)
	w.deps.Actors.Done(e.Org, e.posts, false)
	e.setAside, e.posts = true, 0
}

// reportLost writes into the log what could not be stored, so that nobody has to guess what is published.
func (w *Worker) reportLost(e *pendingOutcome, err error) {
	w.deps.Metrics.lost.Inc()
	w.report(e, "an outcome could not be stored; it is looked up when its claim ends", err)
	w.deps.Actors.Done(e.Org, e.posts, false)
}

func (w *Worker) report(e *pendingOutcome, message string, err error) {
	w.deps.Log.Error(message, "org", e.Org, "post", e.Post, "token", e.Token, "result", e.Result, "releaseId", e.ReleaseID, "error", err)
}
