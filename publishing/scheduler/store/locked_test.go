package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tests/publishtest"
)

// locking calls do while another transaction holds the lock that sql takes.
func (r *rig) locking(sql string, arg any, do func()) {
	r.Helper()
	r.OK(pgx.BeginFunc(r.Context(), r.DB.Pool(pg.Clock), func(tx pgx.Tx) error {
		if _, err := tx.Exec(r.Context(), sql, arg); err != nil {
			return err
		}
		do()
		return nil
	}))
}

const (
	lockPost  = `select 1 from post where id = $1 for no key update`
	lockQueue = `select 1 from channel_queue where channel_id = (select channel_id from post where id = $1) for no key update`
)

func TestFinish_StoresOthersDespiteLockedPost(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{"the post": lockPost, "its channel": lockQueue} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finishBesideLock(t, lock)
		})
	}
}

// finishBesideLock stores the outcomes of two posts while another transaction holds a lock for the
// first.
func finishBesideLock(t *testing.T, lock string) {
	r := newRig(t)
	a, b := r.Post(r.Channel(), -2*time.Second), r.Post(r.Channel(), -time.Second)
	claims := r.Claim(2)
	r.Mark(claims...)
	r.locking(lock, a, func() {
		done, err := schedulerstore.Finish(t.Context(), r.Store, []dispatch.Outcome{
			r.Outcome(claims[0], dispatch.ResultPublished, "a"), r.Outcome(claims[1], dispatch.ResultPublished, "b")}, time.Second, "test")
		r.OK(err)
		for _, f := range done {
			if f.Locked != (f.Post == a) {
				t.Errorf("got %+v, want locked for %s only", f, a)
			}
		}
		if len(done) != 2 {
			t.Errorf("%d of 2 outcomes are answered", len(done))
		}
	})
	r.WantState(b, publishing.StatePublished)
	r.WantState(a, publishing.StatePublishing)
	r.FinishOne(r.Outcome(claims[0], dispatch.ResultPublished, "a"))
	r.WantState(a, publishing.StatePublished)
}

func TestMark_MarksOthersDespiteLockedPost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.Post(r.Channel(), -2*time.Second)
	r.Post(r.Channel(), -time.Second)
	var marks []schedulerstore.Mark
	for _, c := range r.Claim(2) {
		marks = append(marks, schedulerstore.Mark{Post: c.Post, Token: c.Token, Publication: r.Publication(c.Post)})
	}
	r.locking(lockPost, a, func() {
		may, busy, err := schedulerstore.MarkCommitting(t.Context(), r.Store, marks, time.Minute, time.Second)
		r.OK(err)
		for i, m := range marks {
			if may[i] != (m.Post != a) || busy[i] != (m.Post == a) {
				t.Errorf("may %v, busy %v of the locked and the other: %v", may, busy, m.Post == a)
			}
		}
	})
}

func TestGiveBack_FreesTheChannelOfADeletedPost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ch := r.Channel()
	post, next := r.Post(ch, -2*time.Second), r.Post(ch, -time.Second)
	r.Claim(1)
	r.Delete(post)
	_, err := schedulerstore.GiveBack(t.Context(), r.Store, r.Lease, []int64{1}, "test")
	r.OK(err)
	if got := r.Claim(5); len(got) != 1 || got[0].Post != next {
		t.Fatalf("behind a deleted post whose claim was lost %d posts are claimed", len(got))
	}
}

func TestMove_ThreadStaysInOneRound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.Channel(), -time.Second, time.Minute)
	c := r.Claim(1)[0]
	r.giveUp(c)
	for _, step := range []struct {
		to   publishing.State
		keep bool
	}{{to: publishing.StateDraft, keep: true}, {to: publishing.StateDraft, keep: true}, {to: publishing.StateQueue, keep: false}} {
		if err := r.move(post, step.to, !step.keep); err != nil {
			t.Fatal(err)
		}
		if rounds := publishtest.Value[int](r.Base, `select count(distinct republish) from post where group_id = $1`, r.GroupOf(post)); rounds != 1 {
			t.Fatalf("after a move to %s the posts of a thread are in %d rounds: a delayed part would not find what it replies to", step.to, rounds)
		}
	}
}

func TestFinish_RefusalAfterLateSuccessIsNotAFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post, first := r.unknown()
	second := r.Claim(1)[0]
	r.FinishOne(r.Outcome(first, dispatch.ResultPublished, "late"))
	r.fail(second, publishing.CodeRejected)
	if p := r.Root(post); p.State != publishing.StatePublished || *p.ReleaseID != "late" {
		t.Fatalf("a post whose release is stored is %s", p.State)
	}
}

// If a part was published under two release ids, its send ends and the outcome stores the second
// id.
func TestPartDone_LeavesSecondReleaseToFinish(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.Channel(), -time.Second, 0)
	c := r.Claim(1)[0]
	works, err := schedulerstore.Load(t.Context(), r.Store, []publishing.PostID{post})
	r.OK(err)
	x := works[0].Parts[0]
	for i, release := range []string{"one", "one", "two"} {
		x.ReleaseID = &release
		more, err := schedulerstore.PartDone(t.Context(), r.Store, post, c.Token, x, time.Minute, "test")
		if r.OK(err); more != (i < 2) {
			t.Errorf("after release %d the next part may go: %t", i, more)
		}
	}
	done := r.FinishOne(dispatch.Outcome{
		Org: c.Org, Post: c.Post, Token: c.Token, Publication: x.ID, Result: dispatch.ResultResume, ReleaseID: "two",
	})
	if !done.PublishedTwice {
		t.Errorf("the end of a claim with a second release is %+v", done)
	}
	r.WantInTimeline(post, publishing.EventPublishedTwice)
}

// A late success of a locked post is stored once the lock is released.
func TestFinish_StoresLateSuccessAfterLock(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{"of the post": lockPost, "of its channel": lockQueue} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			post := r.Post(r.Channel(), -time.Second)
			c := r.Claim(1)[0]
			r.giveUp(c)
			late := []dispatch.Outcome{r.Outcome(c, dispatch.ResultPublished, "late")}
			r.locking(lock, post, func() {
				done, err := schedulerstore.Finish(t.Context(), r.Store, late, time.Second, "test")
				if r.OK(err); len(done) != 1 || !done[0].Locked {
					t.Errorf("beside a lock: %+v, want that it is locked", done)
				}
			})
			if f := r.FinishOne(late[0]); f.State != publishing.StatePublished || f.Locked {
				t.Errorf("after the lock: %+v", f)
			}
		})
	}
}

// giveUp gives up a claimed post whose call may have reached the platform, with an unknown outcome.
func (r *rig) giveUp(c dispatch.Claimed) {
	r.Helper()
	r.Mark(c)
	r.FinishOne(r.Outcome(c, dispatch.ResultUnknown, ""))
	r.fail(c, publishing.CodeOutcomeUnknown)
}
