package scheduler

import (
	"context"
	"time"

	"crier/platform/clock"
	"crier/platform/failpoint"
	"crier/platform/outbound"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
)

// Send sends a claimed post, part by part, and returns the outcome. The caller must store the
// outcome with Finish. yield must wait for the duration d without holding a permit. A panic affects
// only this post: if the call may have been made, the outcome is unknown; otherwise, it is an
// error.
//
// If the process dies before the call for a part is marked, the part is sent under the next claim.
// If it dies after that, the outcome is unknown and the platform is queried.
func (s *Sender) Send(
	ctx context.Context, w dispatch.Work, yield func(ctx context.Context, d time.Duration) error,
) (out dispatch.Outcome) {
	r := &run{Sender: s, work: w}
	defer func() {
		if p := recover(); p != nil {
			out = r.panicOutcome(p)
		}
	}()
	opened, failed := s.newRun(w)
	if failed != nil {
		return *failed
	}
	if w.Unapproved {
		return unapprovedOutcome(w)
	}
	r = opened
	r.yield = yield
	ctx = outbound.WithOwner(ctx, w.Org.String())
	for i := range r.work.Parts {
		x := &r.work.Parts[i]
		if x.Phase == dispatch.PhaseDone {
			continue
		}
		ref, err := r.sendPart(ctx, i)
		if err != nil {
			return r.failedOutcome(ctx, *x, err)
		}
		x.Phase, x.ReleaseID, x.URL, x.Ref = dispatch.PhaseDone, &ref.ID, &ref.URL, encodeRef(ref)
		if i == len(r.work.Parts)-1 {
			return r.publishedOutcome(*x)
		}
		more, err := s.retryWrite(ctx, func(ctx context.Context) (bool, error) {
			return schedulerstore.PartDone(ctx, s.db, w.Post, w.Token, *x, s.claimHold(), s.db.Node)
		})
		if err != nil || !more {
			// The part is published. Either its release could not be stored, or the claim is lost.
			// Finish stores the release.
			out := r.outcome(*x)
			out.Result = dispatch.ResultResume
			return out
		}
	}
	return r.publishedOutcome(r.work.Parts[len(r.work.Parts)-1])
}

// unapprovedOutcome returns the outcome of a post whose content differs from the approved content.
// Such a post should never reach the sender, because changing the content takes a post out of the
// queue. If one does reach the sender, it is not sent.
func unapprovedOutcome(w dispatch.Work) dispatch.Outcome {
	return dispatch.Outcome{
		Org: w.Org, Post: w.Post, Token: w.Token, Result: dispatch.ResultError, Code: publishing.CodeUnapproved,
		Error: "The content of the post is not what was approved.",
	}
}

// claimHold returns how long a claim lasts after it is made or renewed.
func (s *Sender) claimHold() time.Duration { return s.cfg.PlatformTimeout + claimGrace }

// retryWrite retries write until write succeeds or claimGrace has passed. It ignores the
// cancellation of ctx.
func (s *Sender) retryWrite(ctx context.Context, write func(context.Context) (bool, error)) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimGrace)
	defer cancel()
	for {
		done, err := write(ctx)
		if err == nil {
			return done, nil
		}
		s.deps.Log.Error("cannot store what was published yet; retrying", "error", err)
		if clock.Sleep(ctx, 200*time.Millisecond) != nil {
			return false, err
		}
	}
}

// sendPart prepares and sends one part. If the call was marked, the part's phase and the returned
// error together show whether the part was published, was not published, or has an unknown outcome.
func (r *run) sendPart(ctx context.Context, i int) (connector.Ref, error) {
	for {
		ctx, err := r.prepareAndMark(ctx, i)
		if err != nil {
			return connector.Ref{}, err
		}
		x := &r.work.Parts[i]
		failpoint.At(failpoint.Committing, r.work.Post.String())
		ref, err := r.commit(ctx, i)
		failpoint.At(failpoint.Answered, r.work.Post.String())
		if connector.KindOf(err, true) == connector.KindReauth && err != nil && !r.refreshed {
			// Because the credential was rejected, nothing was published. The mark is removed, and
			// the part is sent once more.
			if e := r.refresh(ctx); e != nil {
				return ref, e
			}
			kept, e := schedulerstore.Unmark(ctx, r.db, r.work.Post, r.work.Token, x.ID, r.claimHold(), r.db.Node)
			if e != nil || !kept {
				return ref, errClaimLost(e)
			}
			x.Phase = dispatch.PhasePreparing
			continue
		}
		return ref, err
	}
}

// prepareAndMark prepares a part, marks its call and returns a context for the call. The time limit
// for the call starts before the mark. Otherwise, a process that is suspended after the mark could
// begin the call too late.
func (r *run) prepareAndMark(ctx context.Context, i int) (context.Context, error) {
	x := &r.work.Parts[i]
	if err := r.prepareWithPictures(ctx, i); err != nil {
		return ctx, err
	}
	failpoint.At(failpoint.Prepared, r.work.Post.String())
	ctx = outbound.WithLimit(ctx, r.cfg.PlatformTimeout)
	marked, err := r.mark(schedulerstore.Mark{
		Post: r.work.Post, Token: r.work.Token, Publication: x.ID,
		Destination: r.work.Channel.Destination, Handle: x.Handle,
	})
	if err != nil || !marked {
		return ctx, errClaimLost(err)
	}
	x.Phase = dispatch.PhaseCommitting
	return ctx, nil
}

// errClaimLost returns the error for a send that ended before its call. Either the post was
// deleted, paused or claimed by another process, or the database did not respond. Nothing was sent.
// If the claim is indeed lost, Finish ignores the outcome.
func errClaimLost(err error) error {
	const message = "The post was changed while it was being published."
	return &connector.Error{Kind: connector.KindTransient, Public: message, Err: err}
}

func (r *run) commit(ctx context.Context, i int) (connector.Ref, error) {
	left, _ := outbound.Left(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), left)
	defer cancel()
	return r.connector.Commit(ctx, r.session, r.item(ctx, i))
}

// longestWait limits how long a platform may take to process one part's media.
const longestWait = 30 * time.Minute

// prepare calls the connector repeatedly until the part is ready. If the handle has changed,
// prepare stores it before the next call to the connector. The last handle is stored together with
// the mark.
func (r *run) prepare(ctx context.Context, i int) error {
	x := &r.work.Parts[i]
	waited := time.Duration(0)
	for {
		step, err := r.prepareOnce(ctx, i)
		if connector.KindOf(err, false) == connector.KindReauth && err != nil && !r.refreshed {
			if err := r.refresh(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		changed := string(step.Handle) != string(x.Handle)
		x.Handle = step.Handle
		if step.Ready {
			return nil
		}
		if changed {
			kept, err := schedulerstore.SaveHandle(
				ctx, r.db, r.work.Post, r.work.Token, x.ID, x.Handle, r.claimHold(),
			)
			if err != nil || !kept {
				return errClaimLost(err)
			}
		}
		if waited += step.Wait; waited > longestWait {
			const message = "The platform was still processing the media after half an hour."
			return &connector.Error{Kind: connector.KindTransient, Public: message}
		}
		if step.Wait > 0 {
			if err := r.waitForPlatform(ctx, x, step.Wait); err != nil {
				return err
			}
		}
	}
}

func (r *run) prepareOnce(ctx context.Context, i int) (connector.Step, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.PlatformTimeout)
	defer cancel()
	return r.connector.Prepare(ctx, r.session, r.item(ctx, i))
}

// waitForPlatform waits for the duration d while the platform is processing media. Before waiting,
// it renews the claim for d plus a claim's usual duration. It holds no permit during the wait.
func (r *run) waitForPlatform(ctx context.Context, x *dispatch.Publication, d time.Duration) error {
	kept, err := schedulerstore.SaveHandle(ctx, r.db, r.work.Post, r.work.Token, x.ID, x.Handle, d+r.claimHold())
	if err != nil || !kept {
		return errClaimLost(err)
	}
	if err := r.yield(ctx, d); err != nil {
		return errStopped(err)
	}
	return nil
}

// errStopped returns the error for a send that ended because its process is stopping. Nothing was
// sent.
func errStopped(err error) error {
	return &connector.Error{Kind: connector.KindTransient, Public: "Crier was stopped while publishing.", Err: err}
}
