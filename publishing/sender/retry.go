package sender

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"crier/publishing"
	"crier/publishing/connector"
)

// failure turns a connector's error into an outcome.
func (r *run) failure(ctx context.Context, x publishing.Publication, err error) publishing.Outcome {
	out := r.outcome(x)
	var e *connector.Error
	if !errors.As(err, &e) {
		e = &connector.Error{Kind: connector.KindOf(err, x.Phase == publishing.PhaseCommitting), Public: "Something went wrong while publishing.", Err: err}
	}
	r.deps.Log.Warn("a post was not published", "org", r.w.Org, "post", r.w.Post, "part", x.Position, "phase", x.Phase, "attempt", r.w.Attempt, "error", e)
	switch e.Kind {
	case connector.KindUnknown:
		out.Result, out.CallEnded = publishing.ResultUnknown, true
	case connector.KindTransient, connector.KindOperator: // nothing was sent, and the operator may mend it meanwhile
		out.Result, out.After, out.Error, out.Code = r.again(e)
	case connector.KindReauth, connector.KindDisconnect:
		out.Result, out.Error = r.park(ctx, e)
	default:
		out.Result, out.Error, out.Code = publishing.ResultError, e.Public, publishing.CodeRejected
	}
	if out.Result == publishing.ResultError {
		out.Error = partly(r.w, x, out.Error)
	}
	return out
}

// again plans the next try of something that surely did not happen. It gives up rather than wait past the end of its time, since the channel waits with it.
func (r *run) again(e *connector.Error) (publishing.Result, time.Duration, string, string) {
	wait := max(e.After, Backoff(r.w.Attempt, rand.Float64()))
	if r.w.Failing+wait <= r.cfg.BackoffFor {
		return publishing.ResultRetry, wait, e.Public, ""
	}
	tries := "one try"
	if r.w.Attempt > 1 {
		tries = fmt.Sprintf("%d tries", r.w.Attempt)
	}
	said := fmt.Sprintf("Given up after %s: %s", tries, e.Public)
	if e.After > r.cfg.BackoffFor {
		said += " The platform asked to wait for " + inWords(e.After) + "."
	}
	return publishing.ResultError, 0, said, publishing.CodeRetriesUsedUp
}

// inWords returns a duration as people read it, such as "30 days" or "90 minutes": in the largest unit that it has at
// least twice, rounded up.
func inWords(d time.Duration) string {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "days"}, {time.Hour, "hours"}, {time.Minute, "minutes"}} {
		if d >= 2*unit.size {
			return fmt.Sprintf("%d %s", (d+unit.size-1)/unit.size, unit.name)
		}
	}
	if n := (d + time.Second - 1) / time.Second; n != 1 {
		return fmt.Sprintf("%d seconds", n)
	}
	return "1 second"
}

// The back-off between tries: it doubles from firstBackoff up to longestBackoff; half of it is jitter.
const (
	firstBackoff   = time.Second
	longestBackoff = 5 * time.Minute
)

// Backoff is the wait after the nth try; jitter is a number from 0 to 1.
func Backoff(attempt int, jitter float64) time.Duration {
	top := longestBackoff
	if attempt < 10 {
		top = min(top, firstBackoff<<attempt)
	}
	return top/2 + time.Duration(float64(top/2)*jitter)
}

// park keeps the channel's posts back until somebody reconnects it; the post itself waits with them.
func (r *run) park(ctx context.Context, e *connector.Error) (publishing.Result, string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), slack)
	defer cancel()
	if err := r.store.Park(ctx, r.w.Org, r.w.Channel.ID, r.sealed); err != nil {
		r.deps.Log.Error("a channel could not be parked", "channel", r.w.Channel.ID, "error", err)
	}
	return publishing.ResultRetry, e.Public
}
