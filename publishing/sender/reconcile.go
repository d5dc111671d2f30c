package sender

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
	publishingstore "crier/publishing/store"
)

// Doubt is a post whose outcome is looked up now.
type Doubt struct {
	publishing.Work
	HolderGone bool
	Now        time.Time // of the database
	Place      string    // destination of its calls
	Blind      bool      // the platform is not asked: its destination rests, and the time for asking is over
	Unreadable bool      // the stored post cannot be read, so that nobody can ask for it
}

// lookHold is how long a look at an unknown outcome may take in all, an access that is renewed included; nobody else
// looks meanwhile.
func (s *Sender) lookHold() time.Duration { return 2*s.cfg.RequestDeadline + slack }

// Doubts takes unknown posts whose time has come, with everything that asking for them needs. admit is asked for each
// before it is taken, and may leave it for later; of the resting destinations only posts are taken that are ended
// without being asked for. more means that there may be others.
func (s *Sender) Doubts(ctx context.Context, l publishing.Lease, resting []string, admit func(publishing.UnknownPost) bool) (out []Doubt, more bool, err error) {
	found, err := s.store.FindUnknown(ctx, l, s.aside.current(s.deps.Clock.Now()), resting, s.cfg.UnknownFor)
	if err != nil || len(found) == 0 {
		return nil, false, err
	}
	doubts := map[publishing.PostID]Doubt{}
	var ids []publishing.PostID
	for _, f := range found {
		blind := slices.Contains(resting, f.Place)
		if blind || admit(f) {
			ids = append(ids, f.Post)
			doubts[f.Post] = Doubt{Place: f.Place, Blind: blind}
		}
	}
	var taken []publishing.Claimed
	_, looked := batch.Isolate(ids, func(some []publishing.PostID) error {
		open, err := s.store.Look(ctx, some, s.lookHold())
		for _, u := range open {
			d := doubts[u.Post]
			d.HolderGone, d.Now = u.HolderGone, u.Now
			d.Org, d.Post, d.Token, d.Committing = u.Org, u.Post, u.Token, u.Committing // of one that cannot be read
			doubts[u.Post], taken = d, append(taken, publishing.Claimed{Org: u.Org, Post: u.Post, Token: u.Token})
		}
		return err
	}, pg.IsRefused, s.refusedRow(ctx, "its outcome cannot be looked up"))
	works, unreadable, err := s.Load(ctx, taken)
	for post, w := range works {
		d := doubts[post]
		d.Work = w
		out = append(out, d)
	}
	for post := range unreadable {
		d := doubts[post]
		d.Unreadable = true
		out = append(out, d)
	}
	return out, len(found) >= publishingstore.MaxLooks && len(ids) > 0, errors.Join(looked, err)
}

// Reconcile asks the platform what became of an unknown send and returns what follows. unanswered is why its
// destination did not answer, nil when it did, or need not.
func (s *Sender) Reconcile(ctx context.Context, d Doubt) (out publishing.Outcome, unanswered error) {
	ctx, cancel := context.WithTimeout(ctx, 2*s.cfg.RequestDeadline)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			s.deps.Log.Error("looking up an outcome panicked", "org", d.Org, "post", d.Post, "panic", p, "stack", string(debug.Stack()))
			out = s.undecided(d)
		}
	}()
	if d.Unreadable {
		return s.undecided(d), nil
	}
	r, failed := s.open(d.Work)
	if failed != nil && failed.Result == publishing.ResultRetry {
		failed.Result = publishing.ResultLater
		return *failed, nil
	}
	if failed != nil {
		return giveUp(d.Work, *failed), nil
	}
	i := doubtful(d.Work)
	if i < 0 {
		// What was unknown has been learnt meanwhile.
		last := r.w.Parts[len(r.w.Parts)-1]
		out := r.success(last)
		if last.Phase != publishing.PhaseDone {
			out.Result, out.Proven = publishing.ResultRetry, true
		}
		return out, nil
	}
	x := &r.w.Parts[i]
	if !d.Channel.Grade.Askable() {
		return giveUp(r.w, r.outcome(*x)), nil
	}
	verdict := connector.Verdict{Outcome: connector.CannotTell}
	if !d.Blind {
		verdict, unanswered = r.ask(ctx, i)
		d.Channel.Destination = r.w.Channel.Destination // which the access may have changed
	}
	switch Decide(verdict.Outcome, d, s.cfg) {
	case publishing.ResultPublished:
		x.Phase, x.ReleaseID, x.URL, x.Ref = publishing.PhaseDone, &verdict.Ref.ID, &verdict.Ref.URL, encode(verdict.Ref)
		if i < len(r.w.Parts)-1 {
			out := r.outcome(*x)
			out.Result = publishing.ResultResume
			return out, unanswered
		}
		return r.success(*x), unanswered
	case publishing.ResultRetry:
		return r.resend(d, *x, verdict.Outcome), unanswered
	case publishing.ResultLater:
		out := r.outcome(*x)
		out.Result, out.After = publishing.ResultLater, NextLook(d, s.cfg)
		return out, unanswered
	default:
		return giveUp(r.w, r.outcome(*x)), unanswered
	}
}

// undecided is the outcome of a look that failed: the post is looked up again until its time is over.
func (s *Sender) undecided(d Doubt) publishing.Outcome {
	out := publishing.Outcome{Org: d.Org, Post: d.Post, Token: d.Token, Result: publishing.ResultLater, After: NextLook(d, s.cfg)}
	if d.Now.Sub(d.Committing) > s.cfg.UnknownFor {
		out = giveUp(d.Work, out)
	}
	return out
}

// resend sends a post again: at once when its process died over it, but with a back-off that ends when the platform
// itself answered with a fault, and not for ever when it is always its process that ends. Unless the verdict proves
// that nothing of the post is on the platform, its key makes the repeat harmless. A post that is given up stays
// unknown until its absence is proved, if that is only a matter of time.
func (r *run) resend(d Doubt, x publishing.Publication, found connector.Outcome) publishing.Outcome {
	out := r.outcome(x)
	out.Result, out.Proven = publishing.ResultRetry, Proves(found, d, r.cfg)
	switch {
	case d.Reaps >= publishingstore.MaxReaps:
		out.Result, out.Code = publishing.ResultError, publishing.CodeTooLong
		out.Error = fmt.Sprintf("The process that sent this post ended %d times in a row.", d.Reaps)
	case d.CallEnded:
		out.Result, out.After, out.Error, out.Code = r.again(&connector.Error{Public: "The platform failed to publish this."})
	case d.Reaps > 1:
		out.After = time.Second << d.Reaps
	}
	switch {
	case out.Result != publishing.ResultError:
	case found == connector.NotPublished && !out.Proven && d.Now.Sub(d.Committing) <= r.cfg.UnknownFor:
		later := r.outcome(x)
		later.Result, later.After = publishing.ResultLater, NextLook(d, r.cfg)
		return later
	default:
		out.Error = partly(r.w, x, out.Error)
	}
	return out
}

// doubtful is the index of the part that was being committed, -1 for none.
func doubtful(w publishing.Work) int {
	for i, x := range w.Parts {
		if x.Phase == publishing.PhaseCommitting {
			return i
		}
	}
	return -1
}

func giveUp(w publishing.Work, out publishing.Outcome) publishing.Outcome {
	out.Result, out.Code = publishing.ResultError, publishing.CodeOutcomeUnknown
	out.Error = "The platform never told whether it published this. It may be live: look there before publishing it again."
	if i := doubtful(w); i >= 0 {
		out.Error = partly(w, w.Parts[i], out.Error)
	}
	return out
}

// partly adds to why a part is not out which parts of its thread are.
func partly(w publishing.Work, part publishing.Publication, why string) string {
	var out []int
	for _, x := range slices.Concat(w.Before, w.Parts) {
		if x.Phase == publishing.PhaseDone && !slices.Contains(out, x.Position) {
			out = append(out, x.Position)
		}
	}
	return publishing.Partly(out, part.Position, why)
}

// ask calls the connector's Reconcile, renewing the access once. The error is why there is no verdict.
func (r *run) ask(ctx context.Context, i int) (connector.Verdict, error) {
	ctx = outbound.WithOwner(ctx, r.w.Org.String())
	for {
		call, cancel := context.WithTimeout(ctx, r.cfg.RequestDeadline)
		verdict, err := r.c.Reconcile(call, r.session, r.item(call, i))
		cancel()
		if err == nil {
			return verdict, nil
		}
		if connector.KindOf(err, false) == connector.KindReauth && !r.renewed {
			if err = r.refresh(ctx); err == nil {
				continue
			}
		}
		r.deps.Log.Warn("the outcome of a post cannot be looked up yet", "post", r.w.Post, "error", err)
		if kind := connector.KindOf(err, false); kind != connector.KindTransient && kind != connector.KindUnknown {
			err = nil // the destination has answered: the fault is the account's, the post's or ours
		}
		return connector.Verdict{Outcome: connector.CannotTell}, err
	}
}

// Decide returns what follows from a verdict. Absent lets a post be sent again at once only where the platform
// de-duplicates; elsewhere only when it is proved. Where the platform de-duplicates by key it is also sent again,
// under the same key, when the platform could not be asked for long: without a proof.
func Decide(found connector.Outcome, d Doubt, cfg Config) publishing.Result {
	age := d.Now.Sub(d.Committing)
	switch {
	case found == connector.Published:
		return publishing.ResultPublished
	case d.Channel.Grade.Deduplicates() && found == connector.NotPublished:
		return publishing.ResultRetry
	case Proves(found, d, cfg):
		return publishing.ResultRetry
	case age > cfg.UnknownFor && d.Channel.Grade == publishing.GradeIdempotent:
		return publishing.ResultRetry
	case age > cfg.UnknownFor:
		return publishing.ResultError
	default:
		return publishing.ResultLater
	}
}

// Proves returns true when a verdict proves that nothing of the post is on the platform and nothing can arrive there
// any more: the server that was asked is the one that it was sent to, nobody may still be about to send it, a call that
// was under way has had its time to take effect, and a fuzzy read-back was repeated, since timelines lag.
func Proves(found connector.Outcome, d Doubt, cfg Config) bool {
	grade := d.Channel.Grade
	return found == connector.NotPublished && !d.elsewhere() && (d.HolderGone || d.CallEnded) && d.Now.Sub(d.Committing) > cfg.RequestDeadline+cfg.SettleTime &&
		grade.Askable() && (grade != publishing.GradeSearchable || d.Looks > 2)
}

// elsewhere returns true when a call went to another server than the channel's access leads to now.
func (d Doubt) elsewhere() bool {
	i := doubtful(d.Work)
	return i >= 0 && d.Parts[i].SentTo != "" && d.Parts[i].SentTo != d.Channel.Destination
}

// NextLook is how long to wait until an unknown outcome is looked up again: soon, then less and less often, and once right when an absent post may be sent again.
func NextLook(d Doubt, cfg Config) time.Duration {
	pauses := []time.Duration{5 * time.Second, 10 * time.Second, 30 * time.Second, 2 * time.Minute}
	wait := pauses[min(max(d.Looks-1, 0), len(pauses)-1)]
	if ripe := cfg.RequestDeadline + cfg.SettleTime - d.Now.Sub(d.Committing); ripe > 0 && ripe < wait {
		wait = ripe + time.Second
	}
	return wait
}
