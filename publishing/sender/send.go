package sender

import (
	"context"
	"runtime/debug"
	"time"

	"crier/platform/clock"
	"crier/platform/failpoint"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/connector"
	publishingstore "crier/publishing/store"
)

func (s *Sender) hold() time.Duration { return s.cfg.RequestDeadline + slack }

// Finish stores outcomes; see the store.
func (s *Sender) Finish(ctx context.Context, outcomes []publishing.Outcome) ([]publishing.Finished, error) {
	return s.store.Finish(ctx, outcomes, s.cfg.LateGap, s.deps.Node)
}

// Bare is an outcome without the texts that a platform or a connector wrote: what can be stored of one that Postgres
// refuses.
func Bare(o publishing.Outcome) publishing.Outcome {
	o.Ref, o.ReleaseURL, o.RootURL = nil, "", ""
	if o.Error != "" {
		o.Error = "The platform's answer cannot be stored."
	}
	for _, id := range []*string{&o.ReleaseID, &o.RootID} {
		if *id != "" && !publishing.Storable(*id) {
			*id = named(nil)
		}
	}
	return o
}

// SetAside writes into a post's timeline that its outcome cannot be stored, and why.
func (s *Sender) SetAside(ctx context.Context, o publishing.Outcome, cause error) error {
	s.aside.count.Add(1)
	return s.store.SetAside(ctx, o.Post, s.deps.Node, "The database refuses the outcome of this post ("+string(o.Result)+"): "+pg.Reason(cause))
}

// Returned is the outcome of a claim that came to nothing: the post goes back to the queue.
func Returned(c publishing.Claimed) publishing.Outcome {
	return publishing.Outcome{Org: c.Org, Post: c.Post, Token: c.Token, Result: publishing.ResultRetry, After: time.Second}
}

// run is one claimed post being sent.
type run struct {
	*Sender
	w       publishing.Work
	c       connector.Connector
	session *connector.Session
	sealed  []byte
	renewed bool                                                  // the access was refreshed once already
	derived map[publishing.MediaID]publishingstore.DerivedPicture // see media
	yield   func(ctx context.Context, d time.Duration) error
}

// Send sends a claimed post, part by part, and returns how it ended; storing that by its token is the caller's. yield
// waits without occupying a worker. A panic ends this post only: as unknown when its call may have been made, else as
// an error.
func (s *Sender) Send(ctx context.Context, w publishing.Work, yield func(ctx context.Context, d time.Duration) error) (out publishing.Outcome) {
	r := &run{Sender: s, w: w}
	defer func() {
		if p := recover(); p != nil {
			out = r.panicked(p)
		}
	}()
	opened, failed := s.open(w)
	if failed != nil {
		return *failed
	}
	r = opened
	r.yield = yield
	ctx = outbound.WithOwner(ctx, w.Org.String())
	for i := range r.w.Parts {
		x := &r.w.Parts[i]
		if x.Phase == publishing.PhaseDone {
			continue
		}
		ref, err := r.part(ctx, i)
		if err != nil {
			return r.failure(ctx, *x, err)
		}
		x.Phase, x.ReleaseID, x.URL, x.Ref = publishing.PhaseDone, &ref.ID, &ref.URL, encode(ref)
		if i == len(r.w.Parts)-1 {
			return r.success(*x)
		}
		more, err := s.tell(ctx, func(ctx context.Context) (bool, error) {
			return s.store.PartDone(ctx, w.Post, w.Token, *x, s.hold(), s.deps.Node)
		})
		if err != nil || !more {
			// It is out; whether it could be stored or the claim is gone, a finish by token has the last word.
			out := r.outcome(*x)
			out.Result = publishing.ResultResume
			return out
		}
	}
	return r.success(r.w.Parts[len(r.w.Parts)-1])
}

// panicked is the outcome of a send that panicked.
func (r *run) panicked(cause any) publishing.Outcome {
	r.deps.Log.Error("publishing a post panicked", "org", r.w.Org, "post", r.w.Post, "panic", cause, "stack", string(debug.Stack()))
	i := doubtful(r.w)
	if i < 0 {
		return publishing.Outcome{Org: r.w.Org, Post: r.w.Post, Token: r.w.Token, Result: publishing.ResultError, Code: publishing.CodeRejected,
			Error: "Crier failed on this post before it was sent; its log has the details."}
	}
	out := r.outcome(r.w.Parts[i])
	out.Result, out.CallEnded = publishing.ResultUnknown, true
	return out
}

// tell repeats a write that must not be lost, as long as the claim lasts.
func (s *Sender) tell(ctx context.Context, do func(context.Context) (bool, error)) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), slack)
	defer cancel()
	for {
		done, err := do(ctx)
		if err == nil {
			return done, nil
		}
		s.deps.Log.Error("what was published could not be written down yet", "error", err)
		if clock.Sleep(ctx, 200*time.Millisecond) != nil {
			return false, err
		}
	}
}

// open finds the connector and opens the credential; what cannot be sent at all is an outcome.
func (s *Sender) open(w publishing.Work) (*run, *publishing.Outcome) {
	out := publishing.Outcome{Org: w.Org, Post: w.Post, Token: w.Token, Result: publishing.ResultError}
	c, ok := s.deps.Connectors.Get(w.Channel.Connector)
	switch {
	case w.Gone:
		out.Error, out.Code = "The channel was disconnected.", publishing.CodeChannelDisabled
		return nil, &out
	case w.Channel.Disabled:
		out.Error, out.Code = "The channel was disabled at the time of the post.", publishing.CodeChannelDisabled
		return nil, &out
	case len(w.Parts) == 0:
		out.Error, out.Code = "The post has no content.", publishing.CodeRejected
		return nil, &out
	}
	// It is the operator's settings that are wrong, not the post: it waits until they are right again, or another process,
	// which may have others while a new version is rolled out, takes it.
	if !ok {
		s.deps.Log.Error("a channel's platform is not offered by this process: are its settings and its version those of the others?", "channel", w.Channel.ID, "platform", w.Channel.Connector)
		out.Result, out.After, out.Error = publishing.ResultRetry, operatorWait, "This instance does not offer the platform of this channel."
		return nil, &out
	}
	credential, err := s.deps.Keyring.Open(w.Credential, w.Org.String())
	if err != nil {
		s.deps.Log.Error("a credential cannot be opened: are ENCRYPTION_KEYS those that it was sealed with?", "channel", w.Channel.ID, "error", err)
		out.Result, out.After, out.Error = publishing.ResultRetry, operatorWait, "The channel's access cannot be read with the keys of this instance."
		return nil, &out
	}
	session := &connector.Session{Env: connector.Env{HTTP: s.deps.HTTP, Clock: s.deps.Clock}, Account: connector.AccountOf(w.Channel), Credential: credential}
	return &run{Sender: s, w: w, c: c, session: session, sealed: w.Credential}, nil
}

// operatorWait is how long a post waits when the settings of this process are wrong.
const operatorWait = time.Minute

const longestWait = 30 * time.Minute

// part prepares and sends one part. After the mark, whatever happens is told truthfully: sent, surely not, or unknown.
func (r *run) part(ctx context.Context, i int) (connector.Ref, error) {
	for {
		ctx, err := r.ready(ctx, i)
		if err != nil {
			return connector.Ref{}, err
		}
		x := &r.w.Parts[i]
		failpoint.At(failpoint.Committing, r.w.Post.String())
		ref, err := r.commit(ctx, i)
		failpoint.At(failpoint.Answered, r.w.Post.String())
		if connector.KindOf(err, true) == connector.KindReauth && err != nil && !r.renewed {
			// A refusal of our access proves that nothing was published: the mark is taken back before the one repeat.
			if e := r.refresh(ctx); e != nil {
				return ref, e
			}
			if back, e := r.store.Unmark(ctx, r.w.Post, r.w.Token, x.ID, r.hold(), r.deps.Node); e != nil || !back {
				return ref, lost(e)
			}
			x.Phase = publishing.PhasePreparing
			continue
		}
		return ref, err
	}
}

// ready prepares a part and marks its call. Its limit begins before the mark: whoever stands still after it must not call any more.
func (r *run) ready(ctx context.Context, i int) (context.Context, error) {
	x := &r.w.Parts[i]
	if err := r.prepareWithPictures(ctx, i); err != nil {
		return ctx, err
	}
	failpoint.At(failpoint.Prepared, r.w.Post.String())
	ctx = outbound.WithLimit(ctx, r.cfg.RequestDeadline)
	marked, err := r.mark(publishingstore.Mark{
		Post: r.w.Post, Token: r.w.Token, Publication: x.ID, Destination: r.w.Channel.Destination, Handle: x.Handle,
	})
	if err != nil || !marked {
		return ctx, lost(err)
	}
	x.Phase = publishing.PhaseCommitting
	return ctx, nil
}

// lost ends a run before its call: the post was deleted, paused or taken over, or the database did not answer. Nothing was sent, and the finish by token says so to whoever it still concerns.
func lost(err error) error {
	return &connector.Error{Kind: connector.KindTransient, Public: "The post was changed while it was being published.", Err: err}
}

func (r *run) commit(ctx context.Context, i int) (connector.Ref, error) {
	left, _ := outbound.Left(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), left)
	defer cancel()
	return r.c.Commit(ctx, r.session, r.item(ctx, i))
}

// prepare calls the connector until the part is ready. It stores the handle before every next call of it; the last one
// is stored with the mark.
func (r *run) prepare(ctx context.Context, i int) error {
	x := &r.w.Parts[i]
	waited := time.Duration(0)
	for {
		step, err := r.step(ctx, i)
		if connector.KindOf(err, false) == connector.KindReauth && err != nil && !r.renewed {
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
			kept, err := r.store.SaveHandle(ctx, r.w.Post, r.w.Token, x.ID, x.Handle, r.hold())
			if err != nil || !kept {
				return lost(err)
			}
		}
		if waited += step.Wait; waited > longestWait {
			return &connector.Error{Kind: connector.KindTransient, Public: "The platform was still processing the media after half an hour."}
		}
		if step.Wait > 0 {
			if err := r.wait(ctx, x, step.Wait); err != nil {
				return err
			}
		}
	}
}

func (r *run) step(ctx context.Context, i int) (connector.Step, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.RequestDeadline)
	defer cancel()
	return r.c.Prepare(ctx, r.session, r.item(ctx, i))
}

// wait gives the worker back while the platform is busy, and keeps the claim alive meanwhile.
func (r *run) wait(ctx context.Context, x *publishing.Publication, d time.Duration) error {
	kept, err := r.store.SaveHandle(ctx, r.w.Post, r.w.Token, x.ID, x.Handle, d+r.hold())
	if err != nil || !kept {
		return lost(err)
	}
	if err := r.yield(ctx, d); err != nil {
		return &connector.Error{Kind: connector.KindTransient, Public: "Crier was stopped while publishing.", Err: err}
	}
	return nil
}

// refresh renews the channel's access once, and stores it before anything uses it. The channel's claim makes this the only refresher.
func (r *run) refresh(ctx context.Context) error {
	r.renewed = true
	reauth := &connector.Error{Kind: connector.KindReauth, Public: "The platform no longer accepts our access; reconnect the channel."}
	refresher, ok := r.c.(connector.Refresher)
	if !ok {
		return reauth
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.RequestDeadline)
	defer cancel()
	fresh, err := refresher.Refresh(ctx, r.session)
	if err != nil {
		return err
	}
	sealed, err := r.deps.Keyring.Seal(fresh.Credential, r.w.Org.String())
	if err != nil {
		return err
	}
	stored, err := r.tell(ctx, func(ctx context.Context) (bool, error) {
		return r.store.SwapCredential(ctx, r.w.Org, r.w.Channel.ID, r.sealed, sealed, fresh.Destination)
	})
	if err != nil || !stored {
		return &connector.Error{Kind: connector.KindTransient, Public: "The channel was reconnected meanwhile.", Err: err}
	}
	r.session.Credential, r.sealed = fresh.Credential, sealed
	if fresh.Destination != "" {
		r.w.Channel.Destination = fresh.Destination
	}
	return nil
}

func (r *run) outcome(x publishing.Publication) publishing.Outcome {
	out := publishing.Outcome{Org: r.w.Org, Post: r.w.Post, Token: r.w.Token, Publication: x.ID}
	if x.Phase == publishing.PhaseDone {
		out.ReleaseID, out.ReleaseURL, out.Ref = named(x.ReleaseID), text(x.URL), x.Ref
	}
	root := r.w.Parts[0]
	out.RootID, out.RootURL = named(root.ReleaseID), text(root.URL)
	return out
}

// named is a release id; a platform that gave none is marked with the word that clients know.
func named(id *string) string {
	if id == nil || *id == "" {
		return "missing"
	}
	return *id
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (r *run) success(x publishing.Publication) publishing.Outcome {
	out := r.outcome(x)
	out.Result = publishing.ResultPublished
	return out
}
