package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	schedulerstore "crier/publishing/scheduler/store"
)

// locking runs do while another transaction holds rows.
func (r *rig) locking(sql string, arg any, do func()) {
	r.Helper()
	r.ok(pgx.BeginFunc(r.Context(), r.db.Pool(pg.Clock), func(tx pgx.Tx) error {
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

func TestFinish_StoresOthersBesideLockedPost(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{"the post": lockPost, "its channel": lockQueue} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finishBesideLock(t, lock)
		})
	}
}

// finishBesideLock stores the outcomes of two posts while a lock is held for the first.
func finishBesideLock(t *testing.T, lock string) {
	r := newRig(t)
	a, b := r.post(r.channel(), -2*time.Second), r.post(r.channel(), -time.Second)
	claims := r.claim(2)
	r.mark(claims...)
	r.locking(lock, a, func() {
		done, err := schedulerstore.Finish(t.Context(), r.store, []publishing.Outcome{
			r.sent(claims[0], publishing.ResultPublished, "a"), r.sent(claims[1], publishing.ResultPublished, "b")}, time.Second, "test")
		r.ok(err)
		for _, f := range done {
			if f.Locked != (f.Post == a) {
				t.Errorf("got %+v, want locked for %s only", f, a)
			}
		}
		if len(done) != 2 {
			t.Errorf("%d of 2 outcomes are answered", len(done))
		}
	})
	r.expect(b, publishing.StatePublished)
	r.expect(a, publishing.StatePublishing)
	r.store1(r.sent(claims[0], publishing.ResultPublished, "a"))
	r.expect(a, publishing.StatePublished)
}

func TestMark_MarksOthersBesideLockedPost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.post(r.channel(), -2*time.Second)
	r.post(r.channel(), -time.Second)
	var marks []schedulerstore.Mark
	for _, c := range r.claim(2) {
		marks = append(marks, schedulerstore.Mark{Post: c.Post, Token: c.Token, Publication: r.publication(c.Post)})
	}
	r.locking(lockPost, a, func() {
		may, busy, err := schedulerstore.MarkCommitting(t.Context(), r.store, marks, time.Minute, time.Second)
		r.ok(err)
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
	ch := r.channel()
	post, next := r.post(ch, -2*time.Second), r.post(ch, -time.Second)
	r.claim(1)
	r.delete(post)
	_, err := schedulerstore.GiveBack(t.Context(), r.store, r.lease, []int64{1}, "test")
	r.ok(err)
	if got := r.claim(5); len(got) != 1 || got[0].Post != next {
		t.Fatalf("behind a deleted post whose claim was lost %d posts are claimed", len(got))
	}
}

func TestMove_ThreadStaysInOneRound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.post(r.channel(), -time.Second, time.Minute)
	c := r.claim(1)[0]
	r.giveUp(c)
	for _, step := range []struct {
		to   publishing.State
		keep bool
	}{{to: publishing.StateDraft, keep: true}, {to: publishing.StateDraft, keep: true}, {to: publishing.StateQueue, keep: false}} {
		if err := r.move(post, step.to, !step.keep); err != nil {
			t.Fatal(err)
		}
		if rounds := value[int](r, `select count(distinct republish) from post where group_id = $1`, r.groupOf(post)); rounds != 1 {
			t.Fatalf("after a move to %s the posts of a thread are in %d rounds: a delayed part would not find what it replies to", step.to, rounds)
		}
	}
}

func TestFinish_RefusalAfterLateSuccessIsNoFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post, first := r.unknown()
	second := r.claim(1)[0]
	r.store1(r.sent(first, publishing.ResultPublished, "late"))
	r.fail(second, publishing.CodeRejected)
	if p := r.root(post); p.State != publishing.StatePublished || *p.ReleaseID != "late" {
		t.Fatalf("a post whose release is stored is %s", p.State)
	}
}

// A part that was published under two release ids ends its send, whose outcome stores the second id.
func TestPartDone_LeavesSecondReleaseToFinish(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.post(r.channel(), -time.Second, 0)
	c := r.claim(1)[0]
	works, err := schedulerstore.Load(t.Context(), r.store, []publishing.PostID{post})
	r.ok(err)
	x := works[0].Parts[0]
	for i, release := range []string{"one", "one", "two"} {
		x.ReleaseID = &release
		more, err := schedulerstore.PartDone(t.Context(), r.store, post, c.Token, x, time.Minute, "test")
		if r.ok(err); more != (i < 2) {
			t.Errorf("after release %d the next part may go: %t", i, more)
		}
	}
	done := r.store1(publishing.Outcome{
		Org: c.Org, Post: c.Post, Token: c.Token, Publication: x.ID, Result: publishing.ResultResume, ReleaseID: "two",
	})
	if !done.PublishedTwice {
		t.Errorf("the end of a claim with a second release is %+v", done)
	}
	r.timeline(post, publishing.EventPublishedTwice)
}

// A late success of a locked post is stored once the lock is released.
func TestFinish_StoresLateSuccessAfterLock(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{"of the post": lockPost, "of its channel": lockQueue} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			post := r.post(r.channel(), -time.Second)
			c := r.claim(1)[0]
			r.giveUp(c)
			late := []publishing.Outcome{r.sent(c, publishing.ResultPublished, "late")}
			r.locking(lock, post, func() {
				done, err := schedulerstore.Finish(t.Context(), r.store, late, time.Second, "test")
				if r.ok(err); len(done) != 1 || !done[0].Locked {
					t.Errorf("beside a lock: %+v, want that it is locked", done)
				}
			})
			if f := r.store1(late[0]); f.State != publishing.StatePublished || f.Locked {
				t.Errorf("after the lock: %+v", f)
			}
		})
	}
}

// giveUp ends a claimed post whose call may have reached the platform, with an unknown outcome.
func (r *rig) giveUp(c publishing.Claimed) {
	r.Helper()
	r.mark(c)
	r.store1(r.sent(c, publishing.ResultUnknown, ""))
	r.fail(c, publishing.CodeOutcomeUnknown)
}
