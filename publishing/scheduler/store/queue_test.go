package store_test

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	accessstore "crier/publishing/access/store"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

func TestClaim_StaleLeaseClaimsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Post(r.Channel(), -time.Second)
	old := r.Lease
	r.Lease = r.NewLease()
	if got := r.ClaimBy(old, 1); len(got.Claimed) != 0 {
		t.Fatal("the old owner claimed")
	}
	r.Clock(`update node set expires_at = now() where id = $1`, r.Lease.Holder)
	if got := r.Claim(1); len(got) != 0 {
		t.Fatal("an expired process claimed")
	}
	r.Clock(`update node set expires_at = now() + interval '1 hour' where id = $1`, r.Lease.Holder)
	if got := r.Claim(1); len(got) != 1 {
		t.Fatalf("claimed %+v with the current lease, want one post", got)
	}
}

func TestClaim_SkipsChannelsKeptBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, hold := range map[string]string{"parked": "parked = true", "paused": "paused = true", "not before": "not_before = now() + interval '1 hour'", "busy": "busy_post = gen_random_uuid()"} {
		c := r.Channel()
		r.Post(c, -time.Second)
		r.Clock(`update channel_queue set `+hold+` where channel_id = $1`, c)
		if got := r.Claim(10); len(got) != 0 {
			t.Errorf("%s: claimed %+v", name, got)
		}
	}
}

func TestClaim_SkipsChannelWhoseFirstPostIsLocked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	head := r.Post(c, -2*time.Second)
	r.Post(c, -time.Second)
	r.OK(r.DB.InOrg(t.Context(), r.Org.UUID(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `select id from post where id = $1 for no key update`, head); err != nil {
			return err
		}
		if got := r.Claim(10); len(got) != 0 {
			t.Errorf("claimed %+v", got)
		}
		return nil
	}))
	if got := r.Claim(10); len(got) != 1 || got[0].Post != head {
		t.Fatalf("claimed %+v once the lock is released, want %s", got, head)
	}
}

func TestClaim_ConcurrentClaimsTakeEachPostOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const channels, each = 20, 10
	for range channels {
		c := r.Channel()
		for i := range each {
			r.Post(c, -time.Duration(each-i)*time.Second)
		}
	}
	var mu sync.Mutex
	taken := map[publishing.PostID]int{}
	last := map[publishing.ChannelID]time.Time{}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for {
				mu.Lock()
				left := channels*each - len(taken)
				mu.Unlock()
				if left == 0 || t.Context().Err() != nil || t.Failed() {
					return
				}
				round, err := r.ClaimFor(r.Lease, dispatch.NoClaimLimits(), dispatch.Want{Org: r.Org, Permits: 3})
				if err != nil {
					t.Error(err)
					return
				}
				for _, c := range round.Claimed {
					mu.Lock()
					taken[c.Post]++
					if c.Due.Before(last[c.Channel]) {
						t.Errorf("%s out of order", c.Post)
					}
					last[c.Channel] = c.Due
					mu.Unlock()
					out := []dispatch.Outcome{{Org: c.Org, Post: c.Post, Token: c.Token, Result: dispatch.ResultPublished, RootID: "x"}}
					for {
						done, err := schedulerstore.Finish(t.Context(), r.Store, out, 0, "test")
						if err != nil {
							t.Error(err)
						}
						if len(done) == 0 || !done[0].Locked { // another claim had locked the post
							break
						}
					}
				}
			}
		})
	}
	group.Wait()
	for post, n := range taken {
		if n != 1 {
			t.Errorf("%s was claimed %d times", post, n)
		}
	}
}

func TestMark_AnswersEachMarkSeparately(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 6 {
		r.Post(r.Channel(), -time.Second)
	}
	got := r.Claim(10)
	got[1].Token = uuid.New()
	r.Clock(`update channel_queue set paused = true where channel_id = $1`, got[2].Channel)
	r.Delete(got[3].Post)
	stale := got[4]
	stale.Token = uuid.New()
	if may := r.Mark(append(got, stale)...); !slices.Equal(may, []bool{true, false, false, false, true, true, false}) {
		t.Fatalf("may is %v, want true for the marks 0, 4 and 5", may)
	}
	if again := r.Mark(got...); slices.Contains(again, true) {
		t.Fatalf("marked twice: %v", again)
	}
}

func TestMark_ExtendsOldClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	left := func(p publishing.PostID) time.Duration {
		return publishtest.Value[time.Duration](r.Base, `select claim_until - now() from post where id = $1`, p)
	}
	fresh, old := r.Post(r.Channel(), -time.Second), r.Post(r.Channel(), -time.Second)
	got := r.Claim(10) // the claims last a minute
	r.Clock(`update post set claim_until = now() + interval '40 seconds' where id = $1`, old)
	r.Mark(got...)
	if left(fresh) > time.Minute || left(old) < 45*time.Second {
		t.Fatalf("%v and %v are left", left(fresh), left(old))
	}
}

func TestDelete_DeletedPostIsNotQueuedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	post := r.Post(c, -time.Second)
	next := r.Post(c, -time.Millisecond)
	got := r.Claim(1)
	r.Delete(post)
	if r.Mark(got[0])[0] {
		t.Fatal("a deleted post may be sent")
	}
	if more := r.Claim(10); len(more) != 0 {
		t.Fatalf("its channel was given away: %+v", more)
	}
	if done := r.Finish(got[0], dispatch.ResultRetry, ""); len(done) != 1 || done[0].State != publishing.StateError {
		t.Fatalf("the retry of a deleted post returns %+v, want the state ERROR", done)
	}
	if more := r.Claim(10); len(more) != 1 || more[0].Post != next {
		t.Fatalf("claimed %+v after the deleted post, want %s", more, next)
	}
}

func TestReap_DecidesByPhase(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	early, late, alive := r.Post(r.Channel(), -time.Second), r.Post(r.Channel(), -time.Second), r.Post(r.Channel(), -time.Second)
	for _, c := range r.Claim(10) {
		if c.Post != early && !r.Mark(c)[0] {
			t.Fatal("a claimed post may not be sent")
		}
	}
	r.Clock(`update post set claim_until = now() - interval '1 second' where id = any($1)`, []uuid.UUID{early.UUID(), late.UUID()})
	if n := r.reap(r.Lease); n != 2 {
		t.Fatalf("reaped %d", n)
	}
	r.WantState(early, publishing.StateQueue)
	r.WantState(late, publishing.StateUnknown)
	r.WantState(alive, publishing.StatePublishing)
	open := r.ClaimUnknown(r.Lease, time.Minute)
	if len(open) != 1 || open[0].Post != late || open[0].HolderGone {
		t.Fatalf("found the unknown outcomes %+v, want %s with a live holder", open, late)
	}
	if again := r.ClaimUnknown(r.Lease, time.Minute); len(again) != 0 {
		t.Fatalf("looked at twice: %+v", again)
	}
	successor := r.NewLease()
	r.Clock(`update node set expires_at = now() where id = $1`, r.Lease.Holder)
	if n := r.reap(successor); n != 0 {
		t.Fatalf("%d claims ended with the lease of their process, which may be in its calls", n)
	}
	r.Clock(`delete from node where id = $1`, r.Lease.Holder)
	if n := r.reap(successor); n != 1 {
		t.Fatalf("the claim of a process that is gone stays: %d", n)
	}
	r.WantState(alive, publishing.StateUnknown)
	if open := r.ClaimUnknown(successor, time.Minute); len(open) != 1 || open[0].Post != alive || !open[0].HolderGone {
		t.Fatalf("found the unknown outcomes %+v, want %s without its holder", open, alive)
	}
}

func TestFinish_QueuesFollowerAfterPredecessor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	good := r.Post(r.Channel(), -time.Second, 0, 5*time.Minute, 10*time.Minute)
	bad := r.Post(r.Channel(), -time.Second, 5*time.Minute, 5*time.Minute)
	for _, c := range r.Claim(10) {
		if c.Post == good {
			r.Finish(c, dispatch.ResultPublished, "")
		} else {
			r.Finish(c, dispatch.ResultError, "rejected")
		}
	}
	states := func(post publishing.PostID) (out []publishing.State) {
		whole, err := poststore.ReadThreadData(t.Context(), r.Store, r.Org, []publishing.Post{r.Root(post)})
		r.OK(err)
		for _, f := range whole.Followers[r.Root(post).Group] {
			out = append(out, f.State)
			if f.State == publishing.StateQueue && (f.Due == nil || time.Until(*f.Due) < 4*time.Minute) {
				t.Errorf("the follower is due at %v", f.Due)
			}
		}
		return out
	}
	if got := states(good); len(got) != 2 || got[0] != publishing.StateQueue || got[1] != publishing.StateWaiting {
		t.Errorf("the posts behind a published one are %v, want QUEUE and WAITING", got)
	}
	if got := states(bad); len(got) != 2 || got[0] != publishing.StateError || got[1] != publishing.StateError {
		t.Errorf("the posts behind a failed one are %v, want two ERROR", got)
	}
}

func TestUpkeep_SpacesLatePostsAndGivesUpMissedOnes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	r.Post(c, -time.Hour)
	second := r.Post(c, -50*time.Minute)
	missed := r.Post(r.Channel(), -25*time.Hour)
	n := r.Expire(r.Lease)
	if p := r.Root(missed); n != 1 || p.State != publishing.StateError || *p.ErrorCode != publishing.CodeMissed {
		t.Fatalf("%d posts expired, the missed one is %+v, want 1 with the code missed", n, p)
	}
	got := r.Claim(10)
	r.Finish(got[0], dispatch.ResultPublished, "")
	round := r.ClaimBy(r.Lease, 10)
	if len(round.Claimed) != 0 {
		t.Fatalf("two late posts at once: %+v", round)
	}
	if done := publishtest.Value[time.Time](r.Base, `select done_at from channel_queue where channel_id = $1`, c); !round.Next[r.Org].Equal(done.Add(30 * time.Second)) {
		t.Errorf("the next late post may go at %s, want it 30 s after %s", round.Next[r.Org], done)
	}
	r.Clock(`update channel_queue set not_before = now() where channel_id = $1`, c)
	if more := r.Claim(10); len(more) != 1 || more[0].Post != second {
		t.Fatalf("claimed %+v after the gap, want %s", more, second)
	}
	busy := r.Channel()
	r.Post(busy, -time.Second)
	r.Post(busy, -time.Second)
	r.Finish(r.Claim(10)[0], dispatch.ResultPublished, "")
	if more := r.Claim(10); len(more) != 1 {
		t.Fatalf("posts that were never held back are spaced: %+v", more)
	}
}

func TestClaim_SkipsParkedChannel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	posts := make([]publishing.Post, 1000)
	for i := range posts {
		posts[i] = fixture.Post(r.Org, c, time.Now().Add(-time.Minute))[0]
	}
	r.Insert(r.Org, posts...)
	r.OK(accessstore.Park(t.Context(), r.Store, r.Org, c, []byte("sealed"), "reason"))
	next, _, err := schedulerstore.Sweep(t.Context(), r.Store, r.Lease, time.Minute, 24*time.Hour)
	r.OK(err)
	if len(next) != 0 {
		t.Fatalf("woken for nothing: %v", next)
	}
	if round := r.ClaimBy(r.Lease, 10); len(round.Claimed) != 0 || len(round.Next) != 0 {
		t.Fatalf("got %+v, want nothing of a parked channel", round)
	}
}

// A process that has just started executes its statements without parameters to have them planned.
func TestStatements_WithoutParametersChangeNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Post(r.Channel(), -time.Minute)
	round, err := r.ClaimFor(dispatch.Lease{}, dispatch.NoClaimLimits())
	r.OK(err)
	works, err := schedulerstore.Load(t.Context(), r.Store, nil)
	r.OK(err)
	done, err := schedulerstore.Finish(t.Context(), r.Store, nil, 0, "test")
	r.OK(err)
	if len(round.Claimed)+len(round.Next)+len(works)+len(done) > 0 {
		t.Errorf("claimed %v, next %v, loaded %v, finished %v", round.Claimed, round.Next, works, done)
	}
}

// The test also fails if a statement is planned with a text other than the one that is sent.
func TestPlan_ChangesNothingAndPlansStatementsAsSent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.Channel(), -time.Second)
	r.OK(schedulerstore.Plan(t.Context(), r.Store))
	r.WantState(post, publishing.StateQueue)
	plans := func() map[pg.Role]int {
		out := map[pg.Role]int{}
		for _, role := range []pg.Role{pg.Clock, pg.Sender} {
			for _, c := range r.DB.Pool(role).AcquireAllIdle(t.Context()) {
				var n int
				r.OK(c.QueryRow(t.Context(), "select count(*) from pg_prepared_statements where statement like '-- publishing.%'").Scan(&n))
				out[role] += n
				c.Release()
			}
		}
		return out
	}
	before := plans()
	if before[pg.Clock] == 0 || before[pg.Sender] == 0 {
		t.Fatalf("%v statements are planned", before)
	}
	published := r.Claim(1)[0]
	r.Load(post)
	r.Mark(published)
	r.Finish(published, dispatch.ResultPublished, "")
	_, _, err := schedulerstore.Sweep(t.Context(), r.Store, r.Lease, time.Minute, time.Hour)
	r.OK(err)
	if after := plans(); !maps.Equal(before, after) {
		t.Errorf("%v statements are planned ahead, and %v after all were sent", before, after)
	}
	r.WantState(post, publishing.StatePublished)
}
