package scheduler

import (
	"context"
	"runtime/debug"
	"time"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
)

// Finish stores outcomes in one statement and returns what changed. It matches outcomes with posts
// by claim token. If pg.IsRefused or pg.IsLocked returns true for the error, no outcome was stored.
// After any other error, outcomes may have been stored. Finish can be called again with the same
// outcomes.
func (s *Sender) Finish(ctx context.Context, outcomes []dispatch.Outcome) ([]dispatch.Finished, error) {
	return schedulerstore.Finish(ctx, s.db, outcomes, s.cfg.CatchUpInterval, s.db.Node)
}

// WithoutTexts returns o without the texts that came from the platform or the connector. It is used
// if Postgres rejects an outcome because of these texts.
func WithoutTexts(o dispatch.Outcome) dispatch.Outcome {
	o.Ref, o.ReleaseURL, o.RootURL = nil, "", ""
	if o.Error != "" {
		o.Error = "The platform's response cannot be stored."
	}
	for _, id := range []*string{&o.ReleaseID, &o.RootID} {
		if *id != "" && !publishing.Storable(*id) {
			*id = releaseID(nil)
		}
	}
	return o
}

// SetAside adds a timeline event that explains why a post's outcome cannot be stored. It returns
// any database error.
func (s *Sender) SetAside(ctx context.Context, o dispatch.Outcome, cause error) error {
	s.setAsides.count.Add(1)
	reason := "The database refuses the outcome of this post (" + string(o.Result) + "): " + pg.Reason(cause)
	return schedulerstore.SetAside(ctx, s.db, o.Post, s.db.Node, reason)
}

// Requeued returns the outcome for a claimed post that was not sent. The post returns to the queue
// and is not retried for at least a second.
func Requeued(c dispatch.Claimed) dispatch.Outcome {
	return dispatch.Outcome{
		Org: c.Org, Post: c.Post, Token: c.Token, Result: dispatch.ResultRetry, After: time.Second,
	}
}

// outcome returns the outcome for part x, with Result unset. It includes the first part's release
// and, if part x is published, that part's release.
func (r *run) outcome(x dispatch.Publication) dispatch.Outcome {
	out := dispatch.Outcome{Org: r.work.Org, Post: r.work.Post, Token: r.work.Token, Publication: x.ID}
	if x.Phase == dispatch.PhaseDone {
		out.ReleaseID, out.ReleaseURL, out.Ref = releaseID(x.ReleaseID), valueOf(x.URL), x.Ref
	}
	root := r.work.Parts[0]
	out.RootID, out.RootURL = releaseID(root.ReleaseID), valueOf(root.URL)
	return out
}

func (r *run) publishedOutcome(x dispatch.Publication) dispatch.Outcome {
	out := r.outcome(x)
	out.Result = dispatch.ResultPublished
	return out
}

// panicOutcome logs a panic in Send with its stack trace, and returns the post's outcome. If the
// call for a part was marked, the outcome is unknown. Otherwise, the outcome is an error, so that
// the post does not cause the panic again.
func (r *run) panicOutcome(cause any) dispatch.Outcome {
	r.deps.Log.Error("publishing a post panicked",
		"org", r.work.Org, "post", r.work.Post, "panic", cause, "stack", string(debug.Stack()))
	i := unknownPart(r.work)
	if i < 0 {
		return dispatch.Outcome{
			Org: r.work.Org, Post: r.work.Post, Token: r.work.Token,
			Result: dispatch.ResultError, Code: publishing.CodeRejected,
			Error: "Crier failed on this post before it was sent; its log has the details.",
		}
	}
	out := r.outcome(r.work.Parts[i])
	out.Result, out.CallEnded = dispatch.ResultUnknown, true
	return out
}

// releaseID returns the given release id, or "missing" if the platform returned none. "missing" is
// part of the public API.
func releaseID(id *string) string {
	if id == nil || *id == "" {
		return publishing.ReleaseMissing
	}
	return *id
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
