package store_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"crier/platform/id"
	"crier/publishing"
	accessstore "crier/publishing/access/store"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tenancy"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// customer assigns a channel to a new customer.
func (r *rig) customer(channel publishing.ChannelID) publishing.CustomerID {
	r.Helper()
	c := id.New[publishing.CustomerTag]()
	r.Exec(`insert into customer (org_id, id, name) values ($1, $2, 'Acme')`, r.Org, c)
	r.Exec(`update channel set customer_id = $2 where id = $1`, channel, c)
	return c
}

func TestPause_ReachesChannelByEveryScope(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mine, grouped := r.Channel(), r.Channel()
	acme := r.customer(grouped)
	r.Post(mine, -time.Second)
	r.Post(grouped, -time.Second)
	for _, c := range []struct {
		scope   publishing.PauseScope
		subject any
		paused  bool
		free    int
	}{
		{scope: publishing.PauseChannel, subject: grouped, paused: true, free: 1},
		{scope: publishing.PauseCustomer, subject: acme, paused: true, free: 1},
		{scope: publishing.PauseChannel, subject: grouped, free: 1}, // its customer is still paused
		{scope: publishing.PauseOrganization, subject: r.Org, paused: true},
		{scope: publishing.PauseCustomer, subject: acme},
		// A second pause changes nothing.
		{scope: publishing.PauseOrganization, subject: r.Org, paused: true},
		{scope: publishing.PauseOrganization, subject: r.Org, free: 2},
	} {
		r.SetPause(c.scope, c.subject, c.paused, 24*time.Hour)
		got := r.Claim(10)
		if len(got) != c.free {
			t.Fatalf("%+v: %d claimed", c, len(got))
		}
		for _, x := range got {
			if _, err := schedulerstore.Finish(t.Context(), r.Store, []dispatch.Outcome{{Org: x.Org, Post: x.Post, Token: x.Token, Result: dispatch.ResultRetry}}, time.Second, "test"); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.SetPause(publishing.PauseOrganization, r.Org, true, time.Hour)
	r.Post(r.Channel(), -time.Second)
	if got := r.Claim(10); len(got) != 0 {
		t.Fatalf("a channel that is connected during a pause publishes: %+v", got)
	}
	r.OK(r.InOrg(func(tx *db.Tx) error {
		if known, err := schedulerstore.Pause(t.Context(), tx, publishing.PauseChannel, id.New[publishing.ChannelTag](), "test"); known || err != nil {
			t.Fatalf("known is %v (%v) for a channel that does not exist, want false", known, err)
		}
		return nil
	}))
}

func TestRevoke_ReturnsClaimsWhoseCallHasNotBegun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	early, begun := r.Post(r.Channel(), -time.Second), r.Post(r.Channel(), -time.Second)
	tokens := map[publishing.PostID]dispatch.Claimed{}
	for _, c := range r.Claim(10) {
		tokens[c.Post] = c
	}
	mark := func(post publishing.PostID) bool {
		ok, err := r.MayCommit(post, tokens[post].Token, r.Publication(post))
		r.OK(err)
		return ok
	}
	if !mark(begun) {
		t.Fatal("the call may not begin")
	}
	held := r.SetPause(publishing.PauseOrganization, r.Org, true, time.Hour)
	if held.Held != 1 || held.InFlight != 1 || len(held.Posts) != 1 || held.Posts[0].ID != early || held.Texts[early] != "part 0" || held.Channels[held.Posts[0].Channel] != "Channel" {
		t.Fatalf("held is %+v, want %s with its text and channel, and one post in flight", held, early)
	}
	if mark(early) {
		t.Fatal("a call begins during a pause")
	}
	r.WantState(early, publishing.StateQueue)
	if done := r.Finish(tokens[begun], dispatch.ResultPublished, ""); len(done) != 1 {
		t.Fatal("what had begun cannot end")
	}
	r.SetPause(publishing.PauseOrganization, r.Org, false, time.Hour)
	if got := r.Claim(10); len(got) != 1 || got[0].Post != early {
		t.Fatalf("claimed %+v after the pause, want %s", got, early)
	}
}

func TestClaim_SpacesPostsAfterPause(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	r.SetPause(publishing.PauseChannel, c, true, time.Hour)
	stale, late := r.Post(c, -3*time.Hour), r.Post(c, -10*time.Minute)
	later := r.Post(c, -5*time.Minute)
	if res := r.SetPause(publishing.PauseChannel, c, false, time.Hour); res.Missed != 1 || res.Held != 2 {
		t.Fatalf("the end of the pause returns %+v, want 1 missed and 2 held", res)
	}
	if p := r.Root(stale); p.State != publishing.StateError || *p.ErrorCode != publishing.CodeMissed {
		t.Fatalf("the post that was kept back for too long is %+v, want an error with the code missed", p)
	}
	r.End(late, dispatch.ResultPublished, "")
	if got := r.Claim(10); len(got) != 0 {
		t.Fatalf("there is no gap: %+v", got)
	}
	r.Clock(`update channel_queue set not_before = now() where channel_id = $1`, c)
	r.End(later, dispatch.ResultPublished, "")
	r.SetPause(publishing.PauseChannel, c, true, 0)
	never := r.Post(c, -time.Second)
	r.SetPause(publishing.PauseChannel, c, false, 0)
	r.WantState(never, publishing.StateError)
}

func TestClaim_SpacesPostsAfterRevokedClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	first := r.Post(c, -time.Second)
	if got := r.Claim(1); len(got) != 1 {
		t.Fatalf("claimed %+v, want one post", got)
	}
	r.SetPause(publishing.PauseChannel, c, true, time.Hour)
	second := r.Post(c, -time.Second)
	r.Clock(`update post set due = due - interval '10 minutes' where channel_id = $1`, c)
	r.SetPause(publishing.PauseChannel, c, false, time.Hour)
	r.End(first, dispatch.ResultPublished, "")
	if got := r.Claim(10); len(got) != 0 {
		t.Fatalf("there is no gap: %+v", got)
	}
	r.Clock(`update channel_queue set not_before = now() where channel_id = $1`, c)
	r.End(second, dispatch.ResultPublished, "")
}

func TestFinish_SpacesPostsAfterStuckPost(t *testing.T) {
	t.Parallel()
	for name, stuck := range map[string]string{"an unknown outcome": "committing_at", "a back-off": "failing_since"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c := r.Channel()
			head := r.Post(c, -time.Second)
			claimed := r.Claim(1)
			r.Mark(claimed...)
			second, third := r.Post(c, -time.Second), r.Post(c, -time.Second)
			r.Clock(`update post set due = due - interval '10 minutes', `+stuck+` = now() - interval '11 minutes' where id = $1`, head)
			r.Clock(`update post set due = due - interval '9 minutes' where channel_id = $1 and id <> $2`, c, head)
			r.Finish(claimed[0], dispatch.ResultPublished, "")
			r.End(second, dispatch.ResultPublished, "")
			if got := r.Claim(10); len(got) != 0 {
				t.Fatalf("there is no gap: %+v, third is %v", got, third)
			}
		})
	}
}

// Claims and marks run concurrently with pauses. No mark is stored after a pause is committed.
func TestMark_RefusedAfterPause(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 30 {
		c := r.Channel()
		post := r.Post(c, -time.Second)
		var race sync.WaitGroup
		var marked, after bool
		var res publishing.PauseResult
		race.Go(func() {
			for _, x := range r.Claim(1) {
				ok, err := r.MayCommit(x.Post, x.Token, r.Publication(x.Post))
				if err != nil {
					t.Error(err)
				}
				marked = ok
			}
		})
		race.Go(func() { res = r.SetPause(publishing.PauseChannel, c, true, time.Hour) })
		race.Wait()
		if marked != (res.InFlight == 1) {
			t.Fatalf("marked: %v, and the pause says %+v", marked, res)
		}
		for _, x := range r.Claim(1) {
			after = after || x.Post == post
		}
		if after {
			t.Fatal("claimed during a pause")
		}
	}
}

func TestUpkeep_GivesUpStuckPostsAndOrphans(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	posts := fixture.Post(r.Org, c, time.Now(), 0, time.Hour)
	r.Insert(r.Org, posts...)
	r.Clock(`update post set due = now() - interval '1 second' where id = $1`, posts[0].ID)
	got := r.Claim(1)
	i := slices.Index(r.Lease.Shards, int16(tenancy.Shard(r.Org)))
	// This is the lease of one process among many.
	lease := dispatch.Lease{Holder: r.Lease.Holder, Shards: r.Lease.Shards[i : i+1]}
	age := func() int { return r.age(lease) }
	// The claim is extended again and again.
	if ok, err := schedulerstore.SaveHandle(t.Context(), r.Store, posts[0].ID, got[0].Token, r.Publication(posts[0].ID), []byte(`{}`), time.Hour); !ok || err != nil || age() != 0 {
		t.Fatalf("SaveHandle returns %v (%v), want true, and no post given up", ok, err)
	}
	r.Clock(`update post set updated_at = now() - interval '7 hours' where id = $1`, posts[0].ID)
	if age() != 1 {
		t.Fatal("a claim is renewed for ever")
	}
	if p := r.Root(posts[0].ID); p.State != publishing.StateError || *p.ErrorCode != publishing.CodeTooLong {
		t.Fatalf("the stuck post is %+v, want an error with the code %s", p, publishing.CodeTooLong)
	}
	if ok, err := r.MayCommit(posts[0].ID, got[0].Token, r.Publication(posts[0].ID)); ok || err != nil {
		t.Fatalf("it may still be sent: %v %v", ok, err)
	}
	state := func(post publishing.PostID) publishing.State {
		return publishtest.Value[publishing.State](r.Base, `select state from post where id = $1`, post)
	}
	if state(posts[1].ID) != publishing.StateError {
		t.Fatal("its follower waits on")
	}
	if again := r.Post(c, -time.Second); len(r.Claim(1)) != 1 {
		t.Fatalf("the channel is not free for %s", again)
	}
	// A follower whose predecessor has ended without queueing it.
	lost := fixture.Post(r.Org, r.Channel(), time.Now().Add(time.Hour), time.Hour)
	r.Insert(r.Org, lost...)
	r.Clock(`update post set publish_date = now() - interval '2 hours', updated_at = now() - interval '2 hours' where id = any($1)`, []string{lost[0].ID.String(), lost[1].ID.String()})
	if age() != 0 {
		t.Fatal("a predecessor that is still to come counts as over")
	}
	r.Clock(`update post set state = 'ERROR', error = 'x', due = now(), updated_at = now() - interval '2 hours' where id = $1`, lost[0].ID)
	if age() != 1 || state(lost[1].ID) != publishing.StateError {
		t.Fatal("a follower waits for ever")
	}
}

func TestQueueStats_CountsDuePosts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	busy, held, quiet := r.Channel(), r.Channel(), r.Channel()
	r.Post(busy, -40*time.Second)
	r.Post(busy, -time.Second) // it waits for the post before it
	r.Post(held, -time.Minute)
	r.Post(quiet, time.Hour)
	r.SetPause(publishing.PauseChannel, held, true, time.Hour)
	look := func(connector string) publishing.QueueStats {
		f, err := schedulerstore.QueueStats(t.Context(), r.Store, connector)
		r.OK(err)
		return f
	}
	f := look("")
	if f.Due != 2 || f.Overdue != 1 || f.Oldest < 40*time.Second || f.Oldest > time.Minute || f.Held != 1 || f.Publishing != 0 || f.Next == nil || f.Healthy() {
		t.Fatalf("got %+v, want 2 due of which 1 is overdue, 1 held, and a next one", f)
	}
	if f := look("sandbox"); f.Overdue != 1 || f.Next != nil {
		t.Fatalf("got %+v of sandbox, want 1 overdue and no next one", f)
	}
	if f := look("nostr"); f.Due != 0 || !f.Healthy() {
		t.Fatalf("got %+v of nostr, want none due", f)
	}
	got := r.Claim(10)
	if f := look(""); f.Publishing != 1 || f.Due != 0 || f.Overdue != 0 || !f.Healthy() {
		t.Fatalf("got %+v after the claim, want 1 publishing and none due", f)
	}
	ok, err := r.MayCommit(got[0].Post, got[0].Token, r.Publication(got[0].Post))
	if !ok || err != nil {
		t.Fatalf("the mark is %v (%v), want true", ok, err)
	}
	r.Finish(got[0], dispatch.ResultUnknown, "")
	if f := look(""); f.Publishing != 0 || f.Unknown != 1 {
		t.Fatalf("got %+v after the reap, want 1 unknown", f)
	}
}

// A pause of a channel stays in force if another pause ends concurrently, whichever commits first.
func TestPause_StaysWhenAnotherEndsConcurrently(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	for round := range 40 {
		r.SetPause(publishing.PauseOrganization, r.Org, true, time.Hour)
		var race sync.WaitGroup
		race.Go(func() { r.SetPause(publishing.PauseOrganization, r.Org, false, time.Hour) })
		race.Go(func() { r.SetPause(publishing.PauseChannel, c, true, time.Hour) })
		race.Wait()
		if !r.isPaused(c) {
			t.Fatalf("round %d: a channel that is paused may publish", round)
		}
		r.SetPause(publishing.PauseChannel, c, false, time.Hour)
	}
}

// A channel that is connected while its organization is being paused is paused too, whichever
// commits first.
func TestPause_ReachesConcurrentlyConnectedChannel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for round := range 40 {
		c := fixture.Channel(r.Org)
		var race sync.WaitGroup
		race.Go(func() { r.SetPause(publishing.PauseOrganization, r.Org, true, time.Hour) })
		race.Go(func() {
			_, _, err := channelstore.ConnectChannel(t.Context(), r.Store, c, []byte("sealed"), nil, nil)
			r.OK(err)
		})
		race.Wait()
		if !r.isPaused(c.ID) {
			t.Fatalf("round %d: a channel of a paused organization may publish", round)
		}
		r.SetPause(publishing.PauseOrganization, r.Org, false, time.Hour)
	}
}

// isPaused returns the flag that claims check.
func (r *rig) isPaused(c publishing.ChannelID) bool {
	r.Helper()
	return publishtest.Value[bool](r.Base, `select paused from channel_queue where channel_id = $1`, c)
}

// Time during which a channel was held back in a back-off does not count as time in which its post
// was failing.
func TestLoad_FailingLeavesOutTimeHeldBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		meanwhile func(r *rig, c publishing.Channel, claim func() dispatch.Claimed)
		failing   bool // whether the time still counts
	}{
		"a pause": {meanwhile: func(r *rig, c publishing.Channel, _ func() dispatch.Claimed) {
			r.SetPause(publishing.PauseChannel, c.ID, true, time.Hour)
			r.SetPause(publishing.PauseChannel, c.ID, false, time.Hour)
		}, failing: false},
		"a refused access that is renewed": {meanwhile: func(r *rig, c publishing.Channel, _ func() dispatch.Claimed) {
			r.OK(accessstore.Park(r.Context(), r.Store, r.Org, c.ID, []byte("sealed"), "reason"))
			r.ConnectChannel(c)
		}, failing: false},
		"an access that cannot be read": {meanwhile: func(r *rig, _ publishing.Channel, claim func() dispatch.Claimed) {
			r.Finish(claim(), dispatch.ResultRetry, "") // no part was reached
		}, failing: false},
		"nothing": {meanwhile: func(*rig, publishing.Channel, func() dispatch.Claimed) {}, failing: true},
		"an access that is renewed before it is refused": {meanwhile: func(r *rig, c publishing.Channel, _ func() dispatch.Claimed) {
			r.ConnectChannel(c)
		}, failing: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c := fixture.Channel(r.Org)
			r.ConnectChannel(c)
			post := r.Post(c.ID, -time.Second)
			claim := func() dispatch.Claimed {
				t.Helper()
				r.Clock(`update post set not_before = null where id = $1`, post)
				claims := r.Claim(1)
				if len(claims) != 1 {
					t.Fatalf("claimed %+v", claims)
				}
				return claims[0]
			}
			failed := r.Outcome(claim(), dispatch.ResultRetry, "")
			failed.After = time.Hour
			r.FinishOne(failed)
			r.Clock(`update post set failing_since = now() - interval '1 hour' where id = $1`, post)
			tc.meanwhile(r, c, claim)
			claim()
			works, err := schedulerstore.Load(t.Context(), r.Store, []publishing.PostID{post})
			if r.OK(err); len(works) != 1 {
				t.Fatalf("loaded %+v", works)
			}
			if d := works[0].Failing; d <= 0 || d >= time.Hour != tc.failing {
				t.Errorf("it has been failing for %s, want an hour: %t", d, tc.failing)
			}
		})
	}
}

func TestHeld_ReturnsTextAndTimeOfFollower(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	r.Post(c, -time.Second, time.Hour)
	r.Finish(r.Claim(1)[0], dispatch.ResultPublished, "")
	held := r.SetPause(publishing.PauseChannel, c, true, time.Hour)
	if len(held.Posts) != 1 || held.Texts[held.Posts[0].ID] != "part 1" || time.Until(held.Posts[0].PublishDate) < 50*time.Minute {
		t.Errorf("held is %+v, want the follower with its own text and time", held)
	}
}
