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
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tenancy"
	"crier/tests/fixture"
)

func (r *rig) pause(scope publishing.PauseScope, subject any, paused bool, hold time.Duration) publishing.PauseResult {
	r.Helper()
	var out publishing.PauseResult
	missed := 0
	r.ok(r.inOrg(func(tx *db.Tx) error {
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
	r.ok(r.inOrg(func(tx *db.Tx) (err error) {
		if paused {
			r.ok(schedulerstore.Revoke(r.Context(), tx, scope, subject, "test"))
		}
		out, err = schedulerstore.Held(r.Context(), tx, scope, subject)
		return err
	}))
	out.Missed, out.Paused = missed, paused
	return out
}

// customer puts a channel into a new customer.
func (r *rig) customer(channel publishing.ChannelID) publishing.CustomerID {
	r.Helper()
	c := id.New[publishing.CustomerTag]()
	r.tenant(`insert into customer (org_id, id, name) values ($1, $2, 'Acme')`, r.org, c)
	r.tenant(`update channel set customer_id = $2 where id = $1`, channel, c)
	return c
}

func TestPause_ReachesChannelByEveryScope(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mine, grouped := r.channel(), r.channel()
	acme := r.customer(grouped)
	r.post(mine, -time.Second)
	r.post(grouped, -time.Second)
	for _, c := range []struct {
		scope   publishing.PauseScope
		subject any
		paused  bool
		free    int
	}{
		{scope: publishing.PauseChannel, subject: grouped, paused: true, free: 1},
		{scope: publishing.PauseCustomer, subject: acme, paused: true, free: 1},
		{scope: publishing.PauseChannel, subject: grouped, free: 1}, // its customer is still paused
		{scope: publishing.PauseOrganization, subject: r.org, paused: true},
		{scope: publishing.PauseCustomer, subject: acme},
		{scope: publishing.PauseOrganization, subject: r.org, paused: true}, // a second pause changes nothing
		{scope: publishing.PauseOrganization, subject: r.org, free: 2},
	} {
		r.pause(c.scope, c.subject, c.paused, 24*time.Hour)
		got := r.claim(10)
		if len(got) != c.free {
			t.Fatalf("%+v: %d claimed", c, len(got))
		}
		for _, x := range got {
			if _, err := schedulerstore.Finish(t.Context(), r.store, []publishing.Outcome{{Org: x.Org, Post: x.Post, Token: x.Token, Result: publishing.ResultRetry}}, time.Second, "test"); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.pause(publishing.PauseOrganization, r.org, true, time.Hour)
	r.post(r.channel(), -time.Second)
	if got := r.claim(10); len(got) != 0 {
		t.Fatalf("a channel that is connected during a pause publishes: %+v", got)
	}
	r.ok(r.inOrg(func(tx *db.Tx) error {
		if known, err := schedulerstore.Pause(t.Context(), tx, publishing.PauseChannel, id.New[publishing.ChannelTag](), "test"); known || err != nil {
			t.Fatalf("known is %v (%v) for a channel that does not exist, want false", known, err)
		}
		return nil
	}))
}

func TestRevoke_ReturnsClaimsWhoseCallHasNotBegun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	early, begun := r.post(r.channel(), -time.Second), r.post(r.channel(), -time.Second)
	tokens := map[publishing.PostID]publishing.Claimed{}
	for _, c := range r.claim(10) {
		tokens[c.Post] = c
	}
	mark := func(post publishing.PostID) bool {
		ok, err := r.may(post, tokens[post].Token, r.publication(post))
		r.ok(err)
		return ok
	}
	if !mark(begun) {
		t.Fatal("the call may not begin")
	}
	held := r.pause(publishing.PauseOrganization, r.org, true, time.Hour)
	if held.Held != 1 || held.InFlight != 1 || len(held.Posts) != 1 || held.Posts[0].ID != early || held.Texts[early] != "part 0" || held.Channels[held.Posts[0].Channel] != "Channel" {
		t.Fatalf("held is %+v, want %s with its text and channel, and one post in flight", held, early)
	}
	if mark(early) {
		t.Fatal("a call begins during a pause")
	}
	r.expect(early, publishing.StateQueue)
	if done := r.finish(tokens[begun], publishing.ResultPublished, ""); len(done) != 1 {
		t.Fatal("what had begun cannot end")
	}
	r.pause(publishing.PauseOrganization, r.org, false, time.Hour)
	if got := r.claim(10); len(got) != 1 || got[0].Post != early {
		t.Fatalf("claimed %+v after the pause, want %s", got, early)
	}
}

func TestClaim_SpacesPostsAfterPause(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.channel()
	r.pause(publishing.PauseChannel, c, true, time.Hour)
	stale, late := r.post(c, -3*time.Hour), r.post(c, -10*time.Minute)
	later := r.post(c, -5*time.Minute)
	if res := r.pause(publishing.PauseChannel, c, false, time.Hour); res.Missed != 1 || res.Held != 2 {
		t.Fatalf("the end of the pause returns %+v, want 1 missed and 2 held", res)
	}
	if p := r.root(stale); p.State != publishing.StateError || *p.ErrorCode != publishing.CodeMissed {
		t.Fatalf("the post that was kept back for too long is %+v, want an error with the code missed", p)
	}
	r.end(late, publishing.ResultPublished, "")
	if got := r.claim(10); len(got) != 0 {
		t.Fatalf("there is no gap: %+v", got)
	}
	r.clock(`update channel_queue set not_before = now() where channel_id = $1`, c)
	r.end(later, publishing.ResultPublished, "")
	r.pause(publishing.PauseChannel, c, true, 0)
	never := r.post(c, -time.Second)
	r.pause(publishing.PauseChannel, c, false, 0)
	r.expect(never, publishing.StateError)
}

func TestClaim_SpacesPostsAfterRevokedClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.channel()
	first := r.post(c, -time.Second)
	if got := r.claim(1); len(got) != 1 {
		t.Fatalf("claimed %+v, want one post", got)
	}
	r.pause(publishing.PauseChannel, c, true, time.Hour)
	second := r.post(c, -time.Second)
	r.clock(`update post set due = due - interval '10 minutes' where channel_id = $1`, c)
	r.pause(publishing.PauseChannel, c, false, time.Hour)
	r.end(first, publishing.ResultPublished, "")
	if got := r.claim(10); len(got) != 0 {
		t.Fatalf("there is no gap: %+v", got)
	}
	r.clock(`update channel_queue set not_before = now() where channel_id = $1`, c)
	r.end(second, publishing.ResultPublished, "")
}

func TestFinish_SpacesPostsBehindStuckPost(t *testing.T) {
	t.Parallel()
	for name, stuck := range map[string]string{"an unknown outcome": "committing_at", "a back-off": "failing_since"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c := r.channel()
			head := r.post(c, -time.Second)
			claimed := r.claim(1)
			r.mark(claimed...)
			second, third := r.post(c, -time.Second), r.post(c, -time.Second)
			r.clock(`update post set due = due - interval '10 minutes', `+stuck+` = now() - interval '11 minutes' where id = $1`, head)
			r.clock(`update post set due = due - interval '9 minutes' where channel_id = $1 and id <> $2`, c, head)
			r.finish(claimed[0], publishing.ResultPublished, "")
			r.end(second, publishing.ResultPublished, "")
			if got := r.claim(10); len(got) != 0 {
				t.Fatalf("there is no gap: %+v, third is %v", got, third)
			}
		})
	}
}

// Claims and marks run beside pauses: no mark is stored after a pause is committed.
func TestMark_RefusedAfterPause(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 30 {
		c := r.channel()
		post := r.post(c, -time.Second)
		var race sync.WaitGroup
		var marked, after bool
		var res publishing.PauseResult
		race.Go(func() {
			for _, x := range r.claim(1) {
				ok, err := r.may(x.Post, x.Token, r.publication(x.Post))
				if err != nil {
					t.Error(err)
				}
				marked = ok
			}
		})
		race.Go(func() { res = r.pause(publishing.PauseChannel, c, true, time.Hour) })
		race.Wait()
		if marked != (res.InFlight == 1) {
			t.Fatalf("marked: %v, and the pause says %+v", marked, res)
		}
		for _, x := range r.claim(1) {
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
	c := r.channel()
	posts := fixture.Post(r.org, c, time.Now(), 0, time.Hour)
	r.insert(posts...)
	r.clock(`update post set due = now() - interval '1 second' where id = $1`, posts[0].ID)
	got := r.claim(1)
	i := slices.Index(r.lease.Shards, int16(tenancy.Shard(r.org)))
	lease := publishing.Lease{Holder: r.lease.Holder, Shards: r.lease.Shards[i : i+1]} // as of one process of many
	age := func() int { return r.age(lease) }
	// The claim is extended again and again.
	if ok, err := schedulerstore.SaveHandle(t.Context(), r.store, posts[0].ID, got[0].Token, r.publication(posts[0].ID), []byte(`{}`), time.Hour); !ok || err != nil || age() != 0 {
		t.Fatalf("SaveHandle returns %v (%v), want true, and no post given up", ok, err)
	}
	r.clock(`update post set updated_at = now() - interval '7 hours' where id = $1`, posts[0].ID)
	if age() != 1 {
		t.Fatal("a claim is renewed for ever")
	}
	if p := r.root(posts[0].ID); p.State != publishing.StateError || *p.ErrorCode != publishing.CodeTooLong {
		t.Fatalf("the stuck post is %+v, want an error with the code %s", p, publishing.CodeTooLong)
	}
	if ok, err := r.may(posts[0].ID, got[0].Token, r.publication(posts[0].ID)); ok || err != nil {
		t.Fatalf("it may still be sent: %v %v", ok, err)
	}
	state := func(post publishing.PostID) publishing.State {
		return value[publishing.State](r, `select state from post where id = $1`, post)
	}
	if state(posts[1].ID) != publishing.StateError {
		t.Fatal("its follower waits on")
	}
	if again := r.post(c, -time.Second); len(r.claim(1)) != 1 {
		t.Fatalf("the channel is not free for %s", again)
	}
	// A follower whose predecessor has ended without queueing it.
	lost := fixture.Post(r.org, r.channel(), time.Now().Add(time.Hour), time.Hour)
	r.insert(lost...)
	r.clock(`update post set publish_date = now() - interval '2 hours', updated_at = now() - interval '2 hours' where id = any($1)`, []string{lost[0].ID.String(), lost[1].ID.String()})
	if age() != 0 {
		t.Fatal("a predecessor that is still to come counts as over")
	}
	r.clock(`update post set state = 'ERROR', error = 'x', due = now(), updated_at = now() - interval '2 hours' where id = $1`, lost[0].ID)
	if age() != 1 || state(lost[1].ID) != publishing.StateError {
		t.Fatal("a follower waits for ever")
	}
}

func TestQueueStats_CountsDuePosts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	busy, held, quiet := r.channel(), r.channel(), r.channel()
	r.post(busy, -40*time.Second)
	r.post(busy, -time.Second) // it waits for the post before it
	r.post(held, -time.Minute)
	r.post(quiet, time.Hour)
	r.pause(publishing.PauseChannel, held, true, time.Hour)
	look := func(connector string) publishing.QueueStats {
		f, err := schedulerstore.QueueStats(t.Context(), r.store, connector)
		r.ok(err)
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
	got := r.claim(10)
	if f := look(""); f.Publishing != 1 || f.Due != 0 || f.Overdue != 0 || !f.Healthy() {
		t.Fatalf("got %+v after the claim, want 1 publishing and none due", f)
	}
	ok, err := r.may(got[0].Post, got[0].Token, r.publication(got[0].Post))
	if !ok || err != nil {
		t.Fatalf("the mark is %v (%v), want true", ok, err)
	}
	r.finish(got[0], publishing.ResultUnknown, "")
	if f := look(""); f.Publishing != 0 || f.Unknown != 1 {
		t.Fatalf("got %+v after the reap, want 1 unknown", f)
	}
}

// A pause of a channel stays in force when another one ends at the same time, in both orders of commit.
func TestPause_StaysWhenAnotherEndsMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.channel()
	for round := range 40 {
		r.pause(publishing.PauseOrganization, r.org, true, time.Hour)
		var race sync.WaitGroup
		race.Go(func() { r.pause(publishing.PauseOrganization, r.org, false, time.Hour) })
		race.Go(func() { r.pause(publishing.PauseChannel, c, true, time.Hour) })
		race.Wait()
		if !r.isPaused(c) {
			t.Fatalf("round %d: a channel that is paused may publish", round)
		}
		r.pause(publishing.PauseChannel, c, false, time.Hour)
	}
}

// A channel that is connected while its organization is paused is paused too, in both orders of commit.
func TestPause_ReachesChannelThatIsConnectedMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for round := range 40 {
		c := fixture.Channel(r.org)
		var race sync.WaitGroup
		race.Go(func() { r.pause(publishing.PauseOrganization, r.org, true, time.Hour) })
		race.Go(func() {
			_, _, err := channelstore.ConnectChannel(t.Context(), r.store, c, []byte("sealed"), nil, nil)
			r.ok(err)
		})
		race.Wait()
		if !r.isPaused(c.ID) {
			t.Fatalf("round %d: a channel of a paused organization may publish", round)
		}
		r.pause(publishing.PauseOrganization, r.org, false, time.Hour)
	}
}

// isPaused returns the flag that claims test.
func (r *rig) isPaused(c publishing.ChannelID) bool {
	r.Helper()
	return value[bool](r, `select paused from channel_queue where channel_id = $1`, c)
}

// The time for which a channel was kept back during a back-off does not count as time in which its post failed.
func TestLoad_FailingLeavesOutTimeKeptBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		meanwhile func(r *rig, c publishing.Channel, claim func() publishing.Claimed)
		failing   bool // the time still counts
	}{
		"a pause": {meanwhile: func(r *rig, c publishing.Channel, _ func() publishing.Claimed) {
			r.pause(publishing.PauseChannel, c.ID, true, time.Hour)
			r.pause(publishing.PauseChannel, c.ID, false, time.Hour)
		}, failing: false},
		"a refused access that is renewed": {meanwhile: func(r *rig, c publishing.Channel, _ func() publishing.Claimed) {
			r.ok(accessstore.Park(r.Context(), r.store, r.org, c.ID, []byte("sealed"), "reason"))
			r.connect(c)
		}, failing: false},
		"an access that cannot be read": {meanwhile: func(r *rig, _ publishing.Channel, claim func() publishing.Claimed) {
			r.finish(claim(), publishing.ResultRetry, "") // no part was reached
		}, failing: false},
		"nothing": {meanwhile: func(*rig, publishing.Channel, func() publishing.Claimed) {}, failing: true},
		"an access that is renewed before it is refused": {meanwhile: func(r *rig, c publishing.Channel, _ func() publishing.Claimed) {
			r.connect(c)
		}, failing: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c := fixture.Channel(r.org)
			r.connect(c)
			post := r.post(c.ID, -time.Second)
			claim := func() publishing.Claimed {
				t.Helper()
				r.clock(`update post set not_before = null where id = $1`, post)
				claims := r.claim(1)
				if len(claims) != 1 {
					t.Fatalf("claimed %+v", claims)
				}
				return claims[0]
			}
			failed := r.sent(claim(), publishing.ResultRetry, "")
			failed.After = time.Hour
			r.store1(failed)
			r.clock(`update post set failing_since = now() - interval '1 hour' where id = $1`, post)
			tc.meanwhile(r, c, claim)
			claim()
			works, err := schedulerstore.Load(t.Context(), r.store, []publishing.PostID{post})
			if r.ok(err); len(works) != 1 {
				t.Fatalf("loaded %+v", works)
			}
			if d := works[0].Failing; d <= 0 || d >= time.Hour != tc.failing {
				t.Errorf("it has been failing for %s, want an hour: %t", d, tc.failing)
			}
		})
	}
}
