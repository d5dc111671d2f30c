package publishtest

import (
	"time"

	"github.com/google/uuid"

	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
)

// ClaimRules returns the rules for claims that last a minute.
func ClaimRules() schedulerstore.ClaimRules {
	return schedulerstore.ClaimRules{
		Hold: time.Minute, MaxLate: 24 * time.Hour, Window: dispatch.ClaimWindow, Node: "test",
	}
}

// Claim claims at most permits posts under the rig's lease.
func (r *StoreRig) Claim(permits int) []dispatch.Claimed {
	r.Helper()
	return r.ClaimBy(r.Lease, permits).Claimed
}

// ClaimBy claims at most permits posts of the organization under a lease.
func (r *StoreRig) ClaimBy(l dispatch.Lease, permits int) dispatch.ClaimResult {
	r.Helper()
	out, err := r.ClaimFor(l, dispatch.NoClaimLimits(), dispatch.Want{Org: r.Org, Permits: permits})
	r.OK(err)
	return out
}

// ClaimFor claims the posts that organizations want, under a lease and within limits.
func (r *StoreRig) ClaimFor(
	l dispatch.Lease, limits dispatch.ClaimLimits, wants ...dispatch.Want,
) (dispatch.ClaimResult, error) {
	return schedulerstore.Claim(r.Context(), r.Store, l, wants, limits, 1, ClaimRules())
}

// Publication returns the publication of the first part of a post.
func (r *StoreRig) Publication(post publishing.PostID) publishing.PublicationID {
	r.Helper()
	return r.PublicationAt(post, 0)
}

// PublicationAt returns the publication of one part of a post; the first part has the position 0.
func (r *StoreRig) PublicationAt(post publishing.PostID, position int) publishing.PublicationID {
	r.Helper()
	return Value[publishing.PublicationID](r.Base, `select id from publication where post_id = $1 and position =
		$2 + (select min(position) from publication where post_id = $1) order by number limit 1`, post, position)
}

// Load loads a claimed post with its parts.
func (r *StoreRig) Load(post publishing.PostID) dispatch.Work {
	r.Helper()
	works, err := schedulerstore.Load(r.Context(), r.Store, []publishing.PostID{post})
	r.OK(err)
	if len(works) != 1 || len(works[0].Parts) == 0 {
		r.Fatalf("loaded %+v, want one post with its parts", works)
	}
	return works[0]
}

// Mark requests the marks of claims, which then last a minute, and reports which of their calls may
// start.
func (r *StoreRig) Mark(claims ...dispatch.Claimed) []bool {
	r.Helper()
	marks := make([]schedulerstore.Mark, len(claims))
	for i, c := range claims {
		marks[i] = schedulerstore.Mark{Post: c.Post, Token: c.Token, Publication: r.Publication(c.Post)}
	}
	may, _, err := schedulerstore.MarkCommitting(r.Context(), r.Store, marks, time.Minute, 15*time.Second)
	r.OK(err)
	return may
}

// MayCommit requests the mark of one call and reports whether the call may start. Like the sender,
// it asks again while another transaction has locked the post.
func (r *StoreRig) MayCommit(
	post publishing.PostID, token uuid.UUID, publication publishing.PublicationID,
) (bool, error) {
	marks := []schedulerstore.Mark{{Post: post, Token: token, Publication: publication}}
	for {
		may, busy, err := schedulerstore.MarkCommitting(r.Context(), r.Store, marks, time.Hour, time.Minute)
		if err != nil || !busy[0] {
			return err == nil && may[0], err
		}
	}
}

// Finish finishes a claim. A retry may start after an hour.
func (r *StoreRig) Finish(c dispatch.Claimed, result dispatch.Result, code string) []dispatch.Finished {
	r.Helper()
	o := dispatch.Outcome{
		Org: c.Org, Post: c.Post, Token: c.Token, Result: result, Code: code, Error: code, RootID: "release",
	}
	if result == dispatch.ResultRetry {
		o.After = time.Hour
	}
	done, err := schedulerstore.Finish(r.Context(), r.Store, []dispatch.Outcome{o}, 30*time.Second, "test")
	r.OK(err)
	return done
}

// Outcome returns an outcome for the first part of a claim, to be used with FinishOne.
func (r *StoreRig) Outcome(c dispatch.Claimed, result dispatch.Result, release string) dispatch.Outcome {
	r.Helper()
	return dispatch.Outcome{
		Org: c.Org, Post: c.Post, Token: c.Token, Publication: r.Publication(c.Post), Result: result,
		ReleaseID: release, RootID: release,
	}
}

// FinishOne stores an outcome. It returns the zero value if the outcome did not end the post.
func (r *StoreRig) FinishOne(o dispatch.Outcome) dispatch.Finished {
	r.Helper()
	done, err := schedulerstore.Finish(r.Context(), r.Store, []dispatch.Outcome{o}, time.Second, "test")
	r.OK(err)
	if len(done) > 1 {
		r.Fatalf("one outcome ended %d posts", len(done))
	}
	if len(done) == 0 {
		return dispatch.Finished{}
	}
	return done[0]
}

// ClaimAndFinish claims a due post and finishes it.
func (r *StoreRig) ClaimAndFinish(post publishing.PostID, result dispatch.Result, code string) {
	r.Helper()
	for _, c := range r.Claim(10) {
		if c.Post == post {
			r.Finish(c, result, code)
			return
		}
	}
	r.Fatalf("%s is not claimed", post)
}

// ClaimUnknown claims, for the duration hold, the unknown outcomes that are due to be reconciled.
func (r *StoreRig) ClaimUnknown(l dispatch.Lease, hold time.Duration) []schedulerstore.ClaimedUnknown {
	r.Helper()
	found, err := schedulerstore.FindUnknown(r.Context(), r.Store, l, nil, nil, time.Hour)
	r.OK(err)
	ids := make([]publishing.PostID, len(found))
	for i, f := range found {
		ids[i] = f.Post
	}
	open, err := schedulerstore.ClaimUnknown(r.Context(), r.Store, ids, hold)
	r.OK(err)
	return open
}

// Upkeep does one kind of upkeep on the posts that need it, and returns how many there were.
func (r *StoreRig) Upkeep(l dispatch.Lease, kind schedulerstore.Upkeep, after time.Duration) int {
	r.Helper()
	ids, err := schedulerstore.Find(r.Context(), r.Store, l, kind, after, nil, schedulerstore.MaxUpkeep)
	r.OK(err)
	n, err := schedulerstore.Do(r.Context(), r.Store, kind, ids, after, "test")
	r.OK(err)
	return n
}

// Expire gives up the posts that are more than a day late, and returns how many there were.
func (r *StoreRig) Expire(l dispatch.Lease) int {
	r.Helper()
	return r.Upkeep(l, schedulerstore.UpkeepExpire, 24*time.Hour)
}

// SetPause begins or ends a pause. Ending it gives up the posts that are later than hold.
func (r *StoreRig) SetPause(
	scope publishing.PauseScope, subject any, paused bool, hold time.Duration,
) publishing.PauseResult {
	r.Helper()
	var out publishing.PauseResult
	missed := 0
	r.OK(r.InOrg(func(tx *db.Tx) error {
		known, done, err := false, true, error(nil)
		if paused {
			known, err = schedulerstore.Pause(r.Context(), tx, scope, subject, "test")
		} else {
			end := schedulerstore.PauseEnd{Scope: scope, Subject: subject, Hold: hold, By: "test"}
			missed, known, done, err = schedulerstore.EndPause(r.Context(), tx, end, nil)
		}
		if err == nil && (!known || !done) {
			r.Fatalf("known is %v, done is %v, want both", known, done)
		}
		return err
	}))
	r.OK(r.InOrg(func(tx *db.Tx) (err error) {
		if paused {
			r.OK(schedulerstore.Revoke(r.Context(), tx, scope, subject, "test"))
		}
		out, err = schedulerstore.Held(r.Context(), tx, scope, subject)
		return err
	}))
	out.Missed, out.Paused = missed, paused
	return out
}
