package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"crier/platform/batch"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
)

// Unknown is a post with an unknown outcome that has been claimed for reconciliation. Token is the
// claim token.
type Unknown struct {
	dispatch.Work
	// HolderGone is set if the process that sent the post no longer exists.
	HolderGone bool
	// Now is the database's time.
	Now time.Time
	// Destination is the target of the post's calls, as in dispatch.Claimed.
	Destination string
	// SkipPlatform is set if the platform must not be queried. This is the case if the destination
	// is resting and RECONCILE_WINDOW has passed.
	SkipPlatform bool
	// Unreadable is set if the stored post cannot be read. In that case, only Org, Post, Token and
	// Committing are set in Work.
	Unreadable bool
}

// reconcileHold returns how long a claim for reconciliation lasts. The duration includes the time
// to refresh the credential.
func (s *Sender) reconcileHold() time.Duration { return 2*s.cfg.PlatformTimeout + claimGrace }

// ClaimUnknown claims posts that have an unknown outcome and whose platform is due to be queried.
// It also loads the data needed for the query. Before it claims a post, it calls admit. If admit
// returns false, the post is left for later.
//
// For a resting destination, ClaimUnknown claims only the posts that will end without a query. It
// does not call admit for these posts.
//
// more is set if there may be more posts to claim. The errors from claiming and loading are joined.
// Even if there is an error, out contains the posts that were claimed and loaded.
func (s *Sender) ClaimUnknown(
	ctx context.Context, l dispatch.Lease, resting []string, admit func(dispatch.UnknownPost) bool,
) (out []Unknown, more bool, err error) {
	found, err := schedulerstore.FindUnknown(
		ctx, s.db, l, s.setAsides.current(s.deps.Clock.Now()), resting, s.cfg.ReconcileWindow,
	)
	if err != nil || len(found) == 0 {
		return nil, false, err
	}
	admitted := map[publishing.PostID]Unknown{}
	var ids []publishing.PostID
	for _, f := range found {
		skip := slices.Contains(resting, f.Destination)
		if skip || admit(f) {
			ids = append(ids, f.Post)
			admitted[f.Post] = Unknown{Destination: f.Destination, SkipPlatform: skip}
		}
	}
	var claimed []dispatch.Claimed
	_, claimErr := batch.Isolate(ids, func(some []publishing.PostID) error {
		open, err := schedulerstore.ClaimUnknown(ctx, s.db, some, s.reconcileHold())
		for _, c := range open {
			u := admitted[c.Post]
			u.HolderGone, u.Now = c.HolderGone, c.Now
			// These four fields are also needed if the post cannot be read.
			u.Org, u.Post, u.Token, u.Committing = c.Org, c.Post, c.Token, c.Committing
			admitted[c.Post] = u
			claimed = append(claimed, dispatch.Claimed{Org: c.Org, Post: c.Post, Token: c.Token})
		}
		return err
	}, pg.IsRefused, s.setPostAside(ctx, "its outcome cannot be looked up"))
	works, unreadable, err := s.Load(ctx, claimed)
	for post, w := range works {
		u := admitted[post]
		u.Work = w
		out = append(out, u)
	}
	for post := range unreadable {
		u := admitted[post]
		u.Unreadable = true
		out = append(out, u)
	}
	return out, len(found) >= schedulerstore.MaxUnknown && len(ids) > 0, errors.Join(claimErr, err)
}

// Reconcile queries the platform about an unknown outcome and returns the new outcome. unanswered
// is the resulting error if the destination did not respond, and nil if it responded or was not
// queried. After a panic, the outcome stays unknown. Once RECONCILE_WINDOW has passed, the post is
// abandoned instead.
func (s *Sender) Reconcile(ctx context.Context, u Unknown) (out dispatch.Outcome, unanswered error) {
	ctx, cancel := context.WithTimeout(ctx, 2*s.cfg.PlatformTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			s.deps.Log.Error("looking up an outcome panicked",
				"org", u.Org, "post", u.Post, "panic", p, "stack", string(debug.Stack()))
			out = s.laterOrGiveUp(u)
		}
	}()
	if u.Unreadable {
		return s.laterOrGiveUp(u), nil
	}
	r, failed := s.newRun(u.Work)
	if failed != nil && failed.Result == dispatch.ResultRetry {
		failed.Result = dispatch.ResultLater
		return *failed, nil
	}
	if failed != nil {
		return giveUp(u.Work, *failed), nil
	}
	i := unknownPart(u.Work)
	if i < 0 {
		// The outcome became known after FindUnknown had returned the post.
		last := r.work.Parts[len(r.work.Parts)-1]
		out := r.publishedOutcome(last)
		if last.Phase != dispatch.PhaseDone {
			out.Result, out.Proven = dispatch.ResultRetry, true
		}
		return out, nil
	}
	x := &r.work.Parts[i]
	if !u.Channel.Grade.Askable() {
		return giveUp(r.work, r.outcome(*x)), nil
	}
	verdict := connector.Verdict{Outcome: connector.CannotTell}
	if !u.SkipPlatform {
		verdict, unanswered = r.askPlatform(ctx, i)
		// A refresh may have changed the destination.
		u.Channel.Destination = r.work.Channel.Destination
	}
	switch Decide(verdict.Outcome, u, s.cfg) {
	case dispatch.ResultPublished:
		x.Phase, x.Ref = dispatch.PhaseDone, encodeRef(verdict.Ref)
		x.ReleaseID, x.URL = &verdict.Ref.ID, &verdict.Ref.URL
		if i < len(r.work.Parts)-1 {
			out := r.outcome(*x)
			out.Result = dispatch.ResultResume
			return out, unanswered
		}
		return r.publishedOutcome(*x), unanswered
	case dispatch.ResultRetry:
		return r.resend(u, *x, verdict.Outcome), unanswered
	case dispatch.ResultLater:
		out := r.outcome(*x)
		out.Result, out.After = dispatch.ResultLater, ReconcileDelay(u, s.cfg)
		return out, unanswered
	default:
		return giveUp(r.work, r.outcome(*x)), unanswered
	}
}

// askPlatform calls Reconcile on the connector. If the platform rejects the credential, askPlatform
// refreshes the credential and retries once. It returns an error if the destination did not
// respond.
func (r *run) askPlatform(ctx context.Context, i int) (connector.Verdict, error) {
	ctx = outbound.WithOwner(ctx, r.work.Org.String())
	for {
		call, cancel := context.WithTimeout(ctx, r.cfg.PlatformTimeout)
		verdict, err := r.connector.Reconcile(call, r.session, r.item(call, i))
		cancel()
		if connector.KindOf(err, false) == connector.KindReauth && !r.refreshed {
			err = r.refresh(ctx)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return connector.Verdict{Outcome: connector.CannotTell}, r.unanswered(err)
		}
		return verdict, nil
	}
}

// unanswered logs why the outcome is still unknown. It returns err if the destination did not
// respond. It returns nil if the account, the post or this process is the cause.
func (r *run) unanswered(err error) error {
	r.deps.Log.Warn("cannot look up the outcome of a post yet", "post", r.work.Post, "error", err)
	if kind := connector.KindOf(err, false); kind != connector.KindTransient && kind != connector.KindUnknown {
		return nil
	}
	return err
}

// Decide returns the result that follows from the platform's answer. If the platform reports that
// the post is absent, the post is sent again. On a platform that deduplicates, it is sent again at
// once; on any other platform, only after the absence has been proven.
//
// If RECONCILE_WINDOW has passed and the outcome is still unknown, the result depends on the
// channel's grade. With GradeIdempotent, the post is sent again with the same key, without proof of
// absence. With any other grade, the post is abandoned.
func Decide(found connector.Outcome, u Unknown, cfg Config) dispatch.Result {
	age := u.Now.Sub(u.Committing)
	switch {
	case found == connector.Published:
		return dispatch.ResultPublished
	case u.Channel.Grade.Deduplicates() && found == connector.NotPublished:
		return dispatch.ResultRetry
	case ProvesAbsence(found, u, cfg):
		return dispatch.ResultRetry
	case age > cfg.ReconcileWindow && u.Channel.Grade == publishing.GradeIdempotent:
		return dispatch.ResultRetry
	case age > cfg.ReconcileWindow:
		return dispatch.ResultError
	default:
		return dispatch.ResultLater
	}
}

// ProvesAbsence reports whether the platform's answer proves that no part of the post is on the
// platform, and that no part can still arrive there. found must be NotPublished, and all of these
// conditions must hold:
//
//   - The platform can be queried, and the server queried is the one that the post was sent to.
//   - No process can still begin the call.
//   - The call has had enough time to take effect.
//   - If the result of a search is not certain, the search was repeated, because timelines lag.
func ProvesAbsence(found connector.Outcome, u Unknown, cfg Config) bool {
	if found != connector.NotPublished || u.sentElsewhere() {
		return false
	}
	callEnded := u.HolderGone || u.CallEnded
	if !callEnded || u.Now.Sub(u.Committing) <= cfg.PlatformTimeout+cfg.SettleDelay {
		return false
	}
	grade := u.Channel.Grade
	return grade.Askable() && (grade != publishing.GradeSearchable || u.ReconcileAttempts > 2)
}

// sentElsewhere reports whether a call was sent to a server other than the one in the channel's
// current credential.
func (u Unknown) sentElsewhere() bool {
	i := unknownPart(u.Work)
	return i >= 0 && u.Parts[i].SentTo != "" && u.Parts[i].SentTo != u.Channel.Destination
}

// ReconcileDelay returns how long to wait before the platform is queried again. The delay grows
// with the number of attempts. It is shorter if an absent post can be sent again before the delay
// ends.
func ReconcileDelay(u Unknown, cfg Config) time.Duration {
	delays := []time.Duration{5 * time.Second, 10 * time.Second, 30 * time.Second, 2 * time.Minute}
	delay := delays[min(max(u.ReconcileAttempts-1, 0), len(delays)-1)]
	settled := cfg.PlatformTimeout + cfg.SettleDelay - u.Now.Sub(u.Committing)
	if settled > 0 && settled < delay {
		delay = settled + time.Second
	}
	return delay
}

// resend returns the outcome for a post that is sent again. If the sending process ended during the
// call, the post is sent again at once, or after a growing wait if this has happened repeatedly.
// After schedulerstore.MaxReaps such processes in a row, the post is abandoned. If the call itself
// ended, the post is sent again after the usual back-off for a failure.
//
// Sending the post again is harmless even without proof of its absence, because the platform
// recognizes the publication's key. A post that would otherwise be abandoned stays unknown while
// its absence can still be proven.
func (r *run) resend(u Unknown, x dispatch.Publication, found connector.Outcome) dispatch.Outcome {
	out := r.outcome(x)
	out.Result, out.Proven = dispatch.ResultRetry, ProvesAbsence(found, u, r.cfg)
	switch {
	case u.Reaps >= schedulerstore.MaxReaps:
		out.Result, out.Code = dispatch.ResultError, publishing.CodeTooLong
		out.Error = fmt.Sprintf("The process that sent this post ended %d times in a row.", u.Reaps)
	case u.CallEnded:
		out.Result, out.After, out.Error, out.Code = r.retryOrFail(
			&connector.Error{Public: "The platform failed to publish this."})
	case u.Reaps > 1:
		out.After = time.Second << u.Reaps
	}
	if out.Result != dispatch.ResultError {
		return out
	}
	if found == connector.NotPublished && !out.Proven && u.Now.Sub(u.Committing) <= r.cfg.ReconcileWindow {
		later := r.outcome(x)
		later.Result, later.After = dispatch.ResultLater, ReconcileDelay(u, r.cfg)
		return later
	}
	out.Error = withPublishedParts(r.work, x, out.Error)
	return out
}

// laterOrGiveUp returns the outcome after a reconciliation has failed. The reconciliation is
// retried until RECONCILE_WINDOW has passed. After that, the post is abandoned.
func (s *Sender) laterOrGiveUp(u Unknown) dispatch.Outcome {
	out := dispatch.Outcome{
		Org: u.Org, Post: u.Post, Token: u.Token, Result: dispatch.ResultLater, After: ReconcileDelay(u, s.cfg),
	}
	if u.Now.Sub(u.Committing) > s.cfg.ReconcileWindow {
		out = giveUp(u.Work, out)
	}
	return out
}

// giveUp returns out with the result changed to an error that says the post may have been
// published.
func giveUp(w dispatch.Work, out dispatch.Outcome) dispatch.Outcome {
	out.Result, out.Code = dispatch.ResultError, publishing.CodeOutcomeUnknown
	out.Error = "The platform never confirmed whether it published this. " +
		"It may be live: check there before publishing it again."
	if i := unknownPart(w); i >= 0 {
		out.Error = withPublishedParts(w, w.Parts[i], out.Error)
	}
	return out
}

// unknownPart returns the index of the part whose call was marked but has no outcome yet. If there
// is no such part, it returns -1.
func unknownPart(w dispatch.Work) int {
	for i, x := range w.Parts {
		if x.Phase == dispatch.PhaseCommitting {
			return i
		}
	}
	return -1
}

// withPublishedParts adds a list of the thread's published parts to reason, which explains why a
// part failed.
func withPublishedParts(w dispatch.Work, part dispatch.Publication, reason string) string {
	var published []int
	for _, x := range slices.Concat(w.Before, w.Parts) {
		if x.Phase == dispatch.PhaseDone && !slices.Contains(published, x.Position) {
			published = append(published, x.Position)
		}
	}
	return publishing.PartialPublishMessage(published, part.Position, reason)
}
