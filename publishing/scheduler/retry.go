package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"crier/platform/text"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/scheduler/dispatch"
)

// failedOutcome logs the error that ended a send and returns the outcome for this kind of error. If
// the call was marked and the error is not a connector.Error, the outcome is unknown.
func (r *run) failedOutcome(ctx context.Context, x dispatch.Publication, err error) dispatch.Outcome {
	out := r.outcome(x)
	var e *connector.Error
	if !errors.As(err, &e) {
		e = &connector.Error{
			Kind:   connector.KindOf(err, x.Phase == dispatch.PhaseCommitting),
			Public: "Something went wrong while publishing.", Err: err,
		}
	}
	r.deps.Log.Warn("a post was not published", "org", r.work.Org, "post", r.work.Post, "part", x.Position,
		"phase", x.Phase, "attempt", r.work.Attempt, "error", e)
	switch e.Kind {
	case connector.KindUnknown:
		out.Result, out.CallEnded = dispatch.ResultUnknown, true
	case connector.KindTransient, connector.KindOperator:
		// Nothing was sent. The operator may be able to correct the settings before the next
		// attempt.
		out.Result, out.After, out.Error, out.Code = r.retryOrFail(e)
	case connector.KindReauth, connector.KindDisconnect:
		out.Result, out.Error = r.requireReconnect(ctx, e)
	default:
		out.Result, out.Error, out.Code = dispatch.ResultError, e.Public, publishing.CodeRejected
	}
	if out.Result == dispatch.ResultError {
		out.Error = withPublishedParts(r.work, x, out.Error)
	}
	return out
}

// retryOrFail returns the result for a part that was certainly not sent, and the wait before the
// next attempt. If the next attempt would be after the end of the retry window, the part fails.
// Retrying any longer would delay the other posts on the channel.
func (r *run) retryOrFail(e *connector.Error) (result dispatch.Result, wait time.Duration, message, code string) {
	wait = max(e.After, Backoff(r.work.Attempt, rand.Float64()))
	if r.work.Failing+wait <= r.cfg.RetryWindow {
		return dispatch.ResultRetry, wait, e.Public, ""
	}
	tries := "one try"
	if r.work.Attempt > 1 {
		tries = fmt.Sprintf("%d tries", r.work.Attempt)
	}
	message = fmt.Sprintf("Given up after %s: %s", tries, e.Public)
	if e.After > r.cfg.RetryWindow {
		message += " The platform asked to wait for " + inWords(e.After) + "."
	}
	return dispatch.ResultError, 0, message, publishing.CodeRetriesUsedUp
}

// inWords formats a duration for users, for example as "30 days" or "90 minutes". It uses the
// largest unit that fits into d at least twice, and rounds up.
func inWords(d time.Duration) string {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{size: 24 * time.Hour, name: "day"}, {size: time.Hour, name: "hour"}, {size: time.Minute, name: "minute"}} {
		if d >= 2*unit.size {
			return text.Count(int((d+unit.size-1)/unit.size), unit.name)
		}
	}
	return text.Count(int((d+time.Second-1)/time.Second), "second")
}

// The back-off between attempts doubles from firstBackoff until it reaches longestBackoff. Half of
// each back-off is jitter.
const (
	firstBackoff   = time.Second
	longestBackoff = 5 * time.Minute
)

// Backoff returns how long to wait after the given attempt, counting from 1. jitter is a number
// between 0 and 1.
func Backoff(attempt int, jitter float64) time.Duration {
	top := longestBackoff
	if attempt < 10 {
		top = min(top, firstBackoff<<attempt)
	}
	return top/2 + time.Duration(float64(top/2)*jitter)
}

// requireReconnect records that the channel must be reconnected, and returns the result for the
// current post. Until the channel is reconnected, its posts are held back, including the current
// post.
func (r *run) requireReconnect(ctx context.Context, e *connector.Error) (dispatch.Result, string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimGrace)
	defer cancel()
	if err := r.deps.Access.Park(ctx, r.work.Org, r.work.Channel.ID, r.sealed, e.Public); err != nil {
		r.deps.Log.Error("cannot mark a channel as needing to be reconnected",
			"channel", r.work.Channel.ID, "error", err)
	}
	return dispatch.ResultRetry, e.Public
}
