package service

import (
	"context"
	"slices"
	"time"

	"crier/publishing"
	"crier/publishing/connector"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// Doubt is a post whose outcome is looked up now.
type Doubt struct {
	Work
	HolderGone bool
	Now        time.Time // of the database
}

// Doubts takes the unknown posts whose time has come, with everything that asking for them needs.
func (s *Publisher) Doubts(ctx context.Context, l Lease) ([]Doubt, error) {
	open, err := s.store.Look(ctx, l, s.hold())
	if err != nil || len(open) == 0 {
		return nil, err
	}
	byID := map[publishing.PostID]publishingstore.Unknown{}
	ids := make([]publishing.PostID, len(open))
	for i, u := range open {
		ids[i], byID[u.Post] = u.Post, u
	}
	works, err := s.store.Load(ctx, ids, ids)
	out := make([]Doubt, len(works))
	for i, w := range works {
		out[i] = Doubt{w, byID[w.Post].HolderGone, byID[w.Post].Now}
	}
	return out, err
}

// Reconcile asks the platform what became of a doubtful send and says what follows.
func (s *Publisher) Reconcile(ctx context.Context, d Doubt) Outcome {
	r, failed := s.open(d.Work)
	if failed != nil && failed.Result == publishingstore.ResultRetry {
		failed.Result = publishingstore.ResultLater
		return *failed
	}
	if failed != nil {
		return giveUp(d.Work, *failed)
	}
	i := doubtful(d.Work)
	if i < 0 {
		out := r.outcome(r.w.Parts[0])
		out.Result = publishingstore.ResultRetry
		return out
	}
	x := &r.w.Parts[i]
	if !d.Channel.Grade.Askable() {
		return giveUp(r.w, r.outcome(*x))
	}
	verdict := r.ask(ctx, i)
	switch Decide(verdict.Outcome, d, s.cfg) {
	case publishingstore.ResultPublished:
		x.Phase, x.ReleaseID, x.URL, x.Ref = "done", &verdict.Ref.ID, &verdict.Ref.URL, encode(verdict.Ref)
		if i < len(r.w.Parts)-1 {
			out := r.outcome(*x)
			out.Result = publishingstore.ResultResume
			return out
		}
		return r.success(*x)
	case publishingstore.ResultRetry:
		return r.resend(d, *x)
	case publishingstore.ResultLater:
		out := r.outcome(*x)
		out.Result, out.After = publishingstore.ResultLater, NextLook(d, s.cfg)
		return out
	default:
		return giveUp(r.w, r.outcome(*x))
	}
}

// resend lets a post be sent again that surely did not go out: at once when its process died over it, but with a back-off that ends when the platform itself answered with a fault.
func (r *run) resend(d Doubt, x publishingstore.Publication) Outcome {
	out := r.outcome(x)
	out.Result = publishingstore.ResultRetry
	if d.CallEnded {
		out.Result, out.After, out.Error, out.Code = r.again(&connector.Error{Public: "The platform failed to publish this."})
	}
	if out.Result == publishingstore.ResultError {
		out.Error = partly(r.w, x, out.Error)
	}
	return out
}

// doubtful is the index of the part that was being committed, -1 for none.
func doubtful(w Work) int {
	for i, x := range w.Parts {
		if x.Phase == "committing" {
			return i
		}
	}
	return -1
}

func giveUp(w Work, out Outcome) Outcome {
	out.Result, out.Code = publishingstore.ResultError, publishing.CodeOutcomeUnknown
	out.Error = "The platform never told whether it published this. It may be live: look there before publishing it again."
	if i := doubtful(w); i >= 0 {
		out.Error = partly(w, w.Parts[i], out.Error)
	}
	return out
}

// partly adds to why a part is not out which parts of its thread are.
func partly(w Work, part publishingstore.Publication, why string) string {
	var out []int
	for _, x := range slices.Concat(w.Before, w.Parts) {
		if x.Phase == "done" && !slices.Contains(out, x.Position) {
			out = append(out, x.Position)
		}
	}
	return publishing.Partly(out, part.Position, why)
}

// ask calls the connector's Reconcile, renewing the access once.
func (r *run) ask(ctx context.Context, i int) connector.Verdict {
	for {
		call, cancel := context.WithTimeout(ctx, r.cfg.RequestDeadline)
		verdict, err := r.c.Reconcile(call, r.session, r.item(call, i))
		cancel()
		if err == nil {
			return verdict
		}
		if connector.KindOf(err, false) != connector.KindReauth || r.renewed {
			r.deps.Log.Warn("the outcome of a post cannot be looked up yet", "post", r.w.Post, "error", err)
			return connector.Verdict{Outcome: connector.CannotTell}
		}
		if err := r.refresh(ctx); err != nil {
			r.deps.Log.Warn("the outcome of a post cannot be looked up yet", "post", r.w.Post, "error", err)
			return connector.Verdict{Outcome: connector.CannotTell}
		}
	}
}

// Decide says what a verdict means. Absent lets a post be sent again at once only where the platform de-duplicates; elsewhere nobody may still be about to send it,
// and a call that was under way must have had its time to take effect. A fuzzy read-back counts only the second time, since timelines lag.
func Decide(found connector.Outcome, d Doubt, cfg Config) publishingstore.Result {
	age := d.Now.Sub(d.Committing)
	switch {
	case found == connector.Published:
		return publishingstore.ResultPublished
	case d.Channel.Grade.Deduplicates() && found == connector.NotPublished:
		return publishingstore.ResultRetry
	case found == connector.NotPublished && (d.HolderGone || d.CallEnded) && age > cfg.RequestDeadline+cfg.SettleTime && (d.Channel.Grade == publishing.GradeC || d.Looks > 2):
		return publishingstore.ResultRetry
	case age > cfg.UnknownFor && d.Channel.Grade == publishing.GradeA:
		return publishingstore.ResultRetry // the platform itself refuses the second of two
	case age > cfg.UnknownFor:
		return publishingstore.ResultError
	default:
		return publishingstore.ResultLater
	}
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

// Tend does the engine's housekeeping for the shards of a lease: it gives up what is too late or stands in a state for too long, and ends the claims of dead workers. It returns what it changed.
func (s *Publisher) Tend(ctx context.Context, l Lease) (expired, reaped int, err error) {
	if reaped, err = s.store.Reap(ctx, l, s.deps.Node); err != nil {
		return 0, 0, err
	}
	if expired, err = s.store.Expire(ctx, l, s.cfg.MaxLate, s.deps.Node); err != nil {
		return 0, reaped, err
	}
	if !s.ageing(s.deps.Clock.Now()) {
		return expired, reaped, nil
	}
	aged, err := s.store.Age(ctx, l, s.cfg.SendFor, s.cfg.WaitFor, s.deps.Node)
	return expired + aged, reaped, err
}

// ageEvery is how often the age of states is looked at: the limits are hours, and every waiting part is read.
const ageEvery = time.Minute

func (s *Publisher) ageing(now time.Time) bool {
	last := s.aged.Load()
	return now.UnixNano()-last >= int64(ageEvery) && s.aged.CompareAndSwap(last, now.UnixNano())
}

// Sweep finds every organization of the lease with something due within the horizon.
func (s *Publisher) Sweep(ctx context.Context, l Lease, horizon time.Duration) (map[tenancy.OrgID]time.Time, time.Time, error) {
	return s.store.Sweep(ctx, l, horizon)
}
