package scheduler_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tenancy"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// isolation is a rig with one Sender.
type isolation struct {
	*rig
	sender *scheduler.Sender
}

func newIsolation(t *testing.T) *isolation {
	t.Helper()
	r := newRig(t)
	return &isolation{rig: r, sender: scheduler.New(limits, r.deps)}
}

// book inserts a post that has been due for the duration late.
func (m member) book(c publishing.ChannelID, late time.Duration) publishing.PostID {
	m.Helper()
	posts := fixture.Post(m.who.Org, c, time.Now())
	m.OK(m.Store.InOrg(m.Context(), m.who.Org, func(tx *db.Tx) error {
		return poststore.Insert(m.Context(), tx, []poststore.NewPost{{Post: posts[0], By: "test"}})
	}))
	m.Clock(`update post set due = now() - $2 * interval '1 millisecond' where id = $1`, posts[0].ID, late.Milliseconds())
	return posts[0].ID
}

func (m member) want(permits int) dispatch.Want {
	return dispatch.Want{Org: m.who.Org, Permits: permits}
}

func (r *isolation) claim(wants ...dispatch.Want) dispatch.ClaimResult {
	r.Helper()
	round, lost, err := r.sender.Claim(r.Context(), r.lease, wants, dispatch.ClaimWindow, dispatch.NoClaimLimits())
	if r.OK(err); len(lost) != 0 {
		r.Fatalf("claims %v are lost", lost)
	}
	return round
}

func claimed(round dispatch.ClaimResult) (out []publishing.PostID) {
	for _, c := range round.Claimed {
		out = append(out, c.Post)
	}
	return out
}

// refuse makes Postgres refuse every update of one post. Its events can still be written.
func (r *isolation) refuse(post publishing.PostID, code string) {
	r.Helper()
	owner, err := pgx.Connect(r.Context(), r.Address)
	r.OK(err)
	_, err = owner.Exec(r.Context(), `create function refuse() returns trigger language plpgsql as $f$ begin
		if new.id = '`+post.String()+`' then raise exception 'this row is bad' using errcode = '`+code+`'; end if; return new; end $f$;
		create trigger refuse before update on post for each row execute function refuse()`)
	r.OK(errors.Join(err, owner.Close(r.Context())))
}

func (r *isolation) state(post publishing.PostID) publishing.State {
	r.Helper()
	return publishtest.Value[publishing.State](r.rig.Base, `select state from post where id = $1`, post)
}

func (m member) setAsideReasons(post publishing.PostID) (reasons int) {
	m.Helper()
	m.OK(m.DB.InOrg(m.Context(), m.who.Org.UUID(), func(tx pgx.Tx) error {
		return tx.QueryRow(m.Context(), `select count(*) from post_event where post_id = $1 and event = 'set_aside' and length(reason) > 20`, post).Scan(&reasons)
	}))
	return reasons
}

func TestClaim_RepairsHoldThatContradictsPosts(t *testing.T) {
	t.Parallel()
	r := newIsolation(t)
	broken, healthy := r.organization(), r.organization()
	c, beside := broken.connect(), broken.connect()
	broken.book(c, 2*time.Second)
	behind := broken.book(c, time.Second)
	want := []dispatch.Want{broken.want(8), healthy.want(8)}
	r.claim(want...)
	// An operator may do this to release a channel.
	r.Clock(`update channel_queue set busy_post = null where channel_id = $1`, c)
	posts := []publishing.PostID{broken.book(beside, time.Second), healthy.book(healthy.connect(), time.Second)}
	got := claimed(r.claim(want...))
	for _, p := range posts {
		if !slices.Contains(got, p) {
			t.Errorf("%s is not claimed because of another channel whose hold is wrong", p)
		}
	}
	if len(got) != 2 || r.state(behind) != publishing.StateQueue {
		t.Fatalf("%d posts are claimed", len(got))
	}
	if r.sender.SetAsides() != 0 {
		t.Fatal("a channel that could be repaired is set aside")
	}
}

func TestClaim_SetsAsideRefusedChannel(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"P0001", "23514", "XX001"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			r := newIsolation(t)
			broken, healthy := r.organization(), r.organization()
			bad := broken.book(broken.connect(), time.Second)
			var posts []publishing.PostID
			for range 5 {
				posts = append(posts, broken.book(broken.connect(), time.Second), healthy.book(healthy.connect(), time.Second))
			}
			r.refuse(bad, code)
			got := claimed(r.claim(broken.want(8), healthy.want(8)))
			for _, p := range posts {
				if !slices.Contains(got, p) {
					t.Errorf("%s is not claimed because the database refuses another post", p)
				}
			}
			if broken.setAsideReasons(bad) != 1 || r.sender.SetAsides() != 1 {
				t.Fatal("the timeline has no reason why the post is not sent")
			}
			if more := claimed(r.claim(broken.want(8))); len(more) != 0 {
				t.Fatalf("claimed again: %v", more)
			}
			if broken.setAsideReasons(bad) != 1 {
				t.Fatal("a channel that is set aside is tried at each claim")
			}
		})
	}
}

func TestClaim_VisitsTheGivenWindow(t *testing.T) {
	t.Parallel()
	r := newIsolation(t)
	org := r.organization()
	for range 5 {
		org.book(org.connect(), time.Second)
	}
	round, _, err := r.sender.Claim(t.Context(), r.lease, []dispatch.Want{org.want(8)}, 2, dispatch.NoClaimLimits())
	r.OK(err)
	if _, more := round.More[org.who.Org]; len(round.Claimed) > 2 || !more {
		t.Fatalf("a claim that looks at two channels takes %d posts and leaves more: %t", len(round.Claimed), more)
	}
}

// timeOutLoadsOver makes every statement that loads posts of more than most channels time out.
func (r *isolation) timeOutLoadsOver(most int) {
	r.Helper()
	owner, err := pgx.Connect(r.Context(), r.Address)
	r.OK(err)
	_, err = owner.Exec(r.Context(), `create sequence channels_read; grant usage on sequence channels_read to crier_sender;
		create function in_time() returns boolean language plpgsql as $f$ begin
			if current_setting('test.statement', true) is distinct from statement_timestamp()::text then
				perform set_config('test.statement', statement_timestamp()::text, false), set_config('test.before', nextval('channels_read')::text, false);
			end if;
			if nextval('channels_read') - current_setting('test.before')::bigint > `+strconv.Itoa(most)+` then
				raise exception 'canceling statement due to statement timeout' using errcode = '57014';
			end if;
			return true; end $f$;
		create policy in_time on channel as restrictive for select to crier_sender using (in_time())`)
	r.OK(errors.Join(err, owner.Close(r.Context())))
}

func TestLoad_ReadsFewerPostsAfterATimeout(t *testing.T) {
	t.Parallel()
	r := newIsolation(t)
	org := r.organization()
	for range 20 {
		org.book(org.connect(), time.Second)
	}
	left := r.claim(org.want(64)).Claimed
	if len(left) != 20 {
		t.Fatalf("%d of 20 posts are claimed", len(left))
	}
	r.timeOutLoadsOver(4)
	calls := 0
	for ; len(left) > 0 && calls < 20; calls++ {
		works, unreadable, err := r.sender.Load(t.Context(), left)
		if len(unreadable) != 0 {
			t.Fatalf("a timeout is taken for the fault of %v", unreadable)
		}
		if len(works) < len(left) && err == nil {
			t.Fatalf("%d of %d posts are loaded without an error", len(works), len(left))
		}
		left = slices.DeleteFunc(left, func(c dispatch.Claimed) bool { _, loaded := works[c.Post]; return loaded })
	}
	if len(left) > 0 || calls < 2 {
		t.Fatalf("after %d calls %d posts are not loaded", calls, len(left))
	}
}

// timeOutLoadsOf makes every statement that loads this post time out.
func (r *isolation) timeOutLoadsOf(post publishing.PostID) {
	r.Helper()
	owner, err := pgx.Connect(r.Context(), r.Address)
	r.OK(err)
	_, err = owner.Exec(r.Context(), `create function in_time(post uuid) returns boolean language plpgsql as $f$ begin
			if post = '`+post.String()+`' then
				raise exception 'canceling statement due to statement timeout' using errcode = '57014';
			end if;
			return true; end $f$;
		create policy in_time on post as restrictive for select to crier_sender using (in_time(id))`)
	r.OK(errors.Join(err, owner.Close(r.Context())))
}

func TestLoad_SlowPostDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	r := newIsolation(t)
	broken, healthy := r.organization(), r.organization()
	bad := broken.book(broken.connect(), time.Second)
	for range 3 {
		healthy.book(healthy.connect(), time.Second)
	}
	r.timeOutLoadsOf(bad)
	left := r.claim(broken.want(8), healthy.want(8)).Claimed
	var last dispatch.Outcome
	for range 200 {
		works, unreadable, err := r.sender.Load(t.Context(), left)
		if err == nil {
			t.Fatal("a timeout is no error")
		}
		left = slices.DeleteFunc(left, func(c dispatch.Claimed) bool { _, loaded := works[c.Post]; return loaded })
		if out, ok := unreadable[bad]; ok {
			last = out
			break
		}
		// Together with posts that can be loaded, it is recognized as the slow one.
		if len(left) == 1 {
			left = append(left, r.claim(healthy.want(8)).Claimed...)
			healthy.book(healthy.connect(), time.Second)
		}
	}
	if last.Result != dispatch.ResultRetry || last.After != time.Minute {
		t.Fatalf("the post that takes too long is tried again after %v as %q", last.After, last.Result)
	}
	for _, c := range left {
		if c.Org == healthy.who.Org && c.Post != bad {
			works, _, err := r.sender.Load(t.Context(), []dispatch.Claimed{c})
			if len(works) != 1 {
				t.Fatalf("%s is not loaded: %v", c.Post, err)
			}
		}
	}
}

func TestLoad_EndsSoonWhenTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	r := newIsolation(t)
	org := r.organization()
	for range 20 {
		org.book(org.connect(), time.Second)
	}
	claimed := r.claim(org.want(64)).Claimed
	r.timeOutLoadsOver(0)
	for range 20 {
		works, unreadable, err := r.sender.Load(t.Context(), claimed)
		if len(works)+len(unreadable) > 0 || err == nil {
			t.Fatalf("%d works and %d outcomes of a database that answers nothing in time: %v", len(works), len(unreadable), err)
		}
	}
}

func TestMaintain_LeavesOutRefusedRow(t *testing.T) {
	t.Parallel()
	r := newIsolation(t)
	org := r.organization()
	bad := org.book(org.connect(), 25*time.Hour)
	var late []publishing.PostID
	for range 20 {
		late = append(late, org.book(org.connect(), 25*time.Hour))
	}
	r.refuse(bad, "P0002")
	for range 2 {
		if _, err := r.sender.Maintain(t.Context(), r.lease); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range late {
		if got := r.state(p); got != publishing.StateError {
			t.Fatalf("%s is %s beside a post that the database refuses", p, got)
		}
	}
	if n := org.setAsideReasons(bad); n != 1 || r.state(bad) != publishing.StateQueue {
		t.Fatalf("the refused post has %d reasons in its timeline", n)
	}
}

func TestMaintain_FindsALockedPostAgain(t *testing.T) {
	t.Parallel()
	r := newIsolation(t)
	org := r.organization()
	late := org.book(org.connect(), 25*time.Hour)
	r.OK(r.DB.InRole(t.Context(), pg.Clock, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `select from post where id = $1 for update`, late); err != nil {
			return err
		}
		m, err := r.sender.Maintain(t.Context(), r.lease)
		if err == nil && m.Expired != 0 {
			t.Error("a post that another transaction has locked is given up")
		}
		return err
	}))
	for _, want := range []int{1, 0} {
		if m, err := r.sender.Maintain(t.Context(), r.lease); err != nil || m.Expired != want {
			t.Fatalf("%d posts are given up, want %d: %v", m.Expired, want, err)
		}
	}
}

func TestMaintain_GivesUpStuckPost(t *testing.T) {
	t.Parallel()
	r := newIsolation(t)
	org := r.organization()
	stuck := org.book(org.connect(), time.Second)
	r.claim(org.want(1))
	r.Clock(`update post set updated_at = now() - interval '2 hours' where id = $1`, stuck)
	if m, err := r.sender.Maintain(t.Context(), r.lease); err != nil || m.Expired != 1 || r.state(stuck) != publishing.StateError {
		t.Fatalf("a post that has been prepared for two hours is %s: %+v, %v", r.state(stuck), m, err)
	}
}

func TestMaintain_ExpiresUntilNothingIsLate(t *testing.T) {
	t.Parallel()
	r := newIsolation(t)
	org := r.organization()
	c := org.connect()
	const n = 2*schedulerstore.MaxUpkeep + 1
	org.tenant(`insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date)
		select $1, gen_random_uuid(), gen_random_uuid(), $2, $3, 'QUEUE', now() - interval '2 days', now() from generate_series(1, $4::int)`, org.who.Org, c, tenancy.Shard(org.who.Org), n)
	if m, err := r.sender.Maintain(t.Context(), r.lease); err != nil || m.Expired != n || m.More {
		t.Fatalf("%d of %d late posts are given up, more %v: %v", m.Expired, n, m.More, err)
	}
	if round := r.claim(org.want(8)); len(round.Claimed) != 0 {
		t.Fatal("a late post is claimed")
	}
}

func TestSend_PanicEndsOnlyItsPost(t *testing.T) {
	t.Parallel()
	r := newIsolation(t)
	c := publishing.Channel{Connector: "none"}
	for phase, want := range map[dispatch.Phase]dispatch.Result{dispatch.PhasePreparing: dispatch.ResultError, dispatch.PhaseCommitting: dispatch.ResultUnknown} {
		parts := []dispatch.Publication{{Phase: phase}}
		w := dispatch.Work{Channel: c, Parts: parts}
		if out := scheduler.SendPanicking(r.sender, w); out.Result != want {
			t.Errorf("a panic while %s ends as %q, want %q", phase, out.Result, want)
		}
	}
}

// A post that is sent again without proof may have been published by its first call. A search on
// the platform must start from the first call, not from the last one, and cover every server that
// the post was sent to.
func TestReconcile_SearchesFromTheFirstCall(t *testing.T) {
	t.Parallel()
	r := newIsolation(t)
	org := r.organization()
	post := org.book(org.connect(), time.Second)
	var first time.Time
	for try := range 2 {
		claims := r.claim(org.want(1)).Claimed
		works, err := schedulerstore.Load(t.Context(), r.Store, []publishing.PostID{post})
		if r.OK(err); len(claims) != 1 || len(works) != 1 {
			t.Fatalf("try %d: %d claimed", try, len(claims))
		}
		mark := schedulerstore.Mark{
			Post: post, Token: claims[0].Token, Publication: works[0].Parts[0].ID, Destination: []string{"a.example", "b.example"}[try],
		}
		_, _, err = schedulerstore.MarkCommitting(t.Context(), r.Store, []schedulerstore.Mark{mark}, time.Minute, time.Second)
		r.OK(err)
		works, err = schedulerstore.Load(t.Context(), r.Store, []publishing.PostID{post})
		if r.OK(err); try == 0 {
			first = works[0].Committing
		}
		asked := scheduler.ItemToReconcile(r.sender, works[0])
		if first.IsZero() || !asked.Committing.Equal(first) || (try > 0) != works[0].Committing.After(first) {
			t.Errorf("call %d was at %s, the platform is asked for what came after %s, want %s", try+1, works[0].Committing, asked.Committing, first)
		}
		if got, want := works[0].Parts[0].SentTo, []string{"a.example", "*"}[try]; got != want {
			t.Errorf("after call %d it was sent to %q, want %q", try+1, got, want)
		}
		for _, result := range []dispatch.Result{dispatch.ResultUnknown, dispatch.ResultRetry} {
			_, err := r.sender.Finish(t.Context(), []dispatch.Outcome{{
				Org: org.who.Org, Post: post, Token: mark.Token, Publication: mark.Publication, Result: result,
			}})
			r.OK(err)
		}
	}
}
