package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tenancy"
	"crier/tests/fixture"
)

// resume ends the stop of the organization and returns how many posts were given up.
func (r *rig) resume(catchUp bool, hold time.Duration) (missed int) {
	r.Helper()
	r.OK(r.InOrg(func(tx *db.Tx) (err error) {
		done := false
		missed, _, done, err = schedulerstore.EndPause(r.Context(), tx, r.endOfStop(catchUp, hold), nil)
		if err == nil && !done {
			r.Error("the stop goes on, want it ended")
		}
		return err
	}))
	return missed
}

func (r *rig) endOfStop(catchUp bool, hold time.Duration) schedulerstore.PauseEnd {
	end := schedulerstore.PauseEnd{Scope: publishing.PauseInstance, Subject: r.Org, AllSince: !catchUp, By: "test"}
	if catchUp {
		end.Hold = hold
	}
	return end
}

func TestStop_ReachesEveryChannelUntilResume(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mine, grouped := r.Channel(), r.Channel()
	acme := r.customer(grouped)
	other := id.New[publishing.CustomerTag]()
	r.Exec(`insert into customer (org_id, id, name) values ($1, $2, 'Other')`, r.Org, other)
	r.SetPause(publishing.PauseOrganization, r.Org, true, time.Hour)
	r.SetPause(publishing.PauseInstance, r.Org, true, time.Hour)
	late := r.Channel()
	r.SetPause(publishing.PauseInstance, r.Org, true, time.Hour) // a second stop changes nothing
	expectPaused := func(after string, want bool) {
		t.Helper()
		for _, c := range []publishing.ChannelID{mine, grouped, late} {
			if got := r.isPaused(c); got != want {
				t.Errorf("after %s the channel %s is paused: %v, want %v", after, c, got, want)
			}
		}
	}
	expectPaused("the stop", true)
	r.SetPause(publishing.PauseOrganization, r.Org, false, time.Hour)
	expectPaused("the organization has ended its pause", true)
	r.SetPause(publishing.PauseChannel, mine, true, time.Hour)
	r.SetPause(publishing.PauseChannel, mine, false, time.Hour)
	r.Exec(`update channel set customer_id = $2 where id = $1`, grouped, other)
	r.SetPause(publishing.PauseCustomer, other, true, time.Hour)
	r.SetPause(publishing.PauseCustomer, acme, false, time.Hour)
	r.SetPause(publishing.PauseCustomer, other, false, time.Hour)
	expectPaused("pauses of channels and customers", true)
	for _, c := range []publishing.ChannelID{mine, grouped, late} {
		r.Post(c, -time.Second)
	}
	if got := r.Claim(10); len(got) != 0 {
		t.Errorf("a stopped organization publishes: %+v", got)
	}
	for range 2 { // the second call has no effect
		if missed := r.resume(true, time.Hour); missed != 0 {
			t.Errorf("%d posts were given up, want none", missed)
		}
	}
	expectPaused("the end of the stop", false)
	if got := r.Claim(10); len(got) != 3 {
		t.Errorf("claimed %+v after the end of the stop, want 3 posts", got)
	}
}

func TestStop_LeavesPausesOfTheOrganization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	for name, paused := range map[publishing.PauseScope]any{
		publishing.PauseOrganization: r.Org, publishing.PauseCustomer: r.customer(c), publishing.PauseChannel: c,
	} {
		r.SetPause(publishing.PauseInstance, r.Org, true, time.Hour)
		r.SetPause(name, paused, true, time.Hour)
		r.resume(true, time.Hour)
		if !r.isPaused(c) {
			t.Errorf("the pause of the %s ended with the stop", name)
		}
		r.SetPause(name, paused, false, time.Hour)
		if r.isPaused(c) {
			t.Errorf("the channel is paused after the pause of the %s and the stop have ended", name)
		}
	}
}

func TestStop_RevokesClaimsWhoseCallHasNotBegun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	early, begun := r.Post(r.Channel(), -time.Second), r.Post(r.Channel(), -time.Second)
	claims := map[publishing.PostID]dispatch.Claimed{}
	for _, c := range r.Claim(10) {
		claims[c.Post] = c
	}
	if !r.Mark(claims[begun])[0] {
		t.Fatal("the call may not begin")
	}
	r.SetPause(publishing.PauseInstance, r.Org, true, time.Hour)
	if r.Mark(claims[early])[0] {
		t.Error("a call begins after the stop")
	}
	r.WantState(early, publishing.StateQueue)
	if done := r.Finish(claims[begun], dispatch.ResultPublished, ""); len(done) != 1 {
		t.Error("what had begun cannot end")
	}
}

func TestResume_GivesUpMissedPosts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		catchUp, paused      bool
		before, since, stale publishing.State
	}{
		"after a deletion all of it": {
			before: publishing.StateError, since: publishing.StateError, stale: publishing.StateError,
		},
		"after a deletion beside a pause what fell due since the stop": {
			paused: true, before: publishing.StateQueue, since: publishing.StateError, stale: publishing.StateQueue,
		},
		"after a suspension what is too late": {
			catchUp: true, before: publishing.StateQueue, since: publishing.StateQueue, stale: publishing.StateError,
		},
		"after a suspension beside a pause nothing": {
			catchUp: true, paused: true,
			before: publishing.StateQueue, since: publishing.StateQueue, stale: publishing.StateQueue,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c := r.Channel()
			r.SetPause(publishing.PauseChannel, c, tc.paused, time.Hour)
			r.SetPause(publishing.PauseInstance, r.Org, true, time.Hour)
			r.Exec(`update pause set at = now() - interval '20 minutes' where scope = 'instance'`)
			stale, before := r.Post(c, -3*time.Hour), r.Post(c, -30*time.Minute)
			since, future := r.Post(c, -10*time.Minute, time.Hour), r.Post(c, time.Hour)
			missed := r.resume(tc.catchUp, time.Hour)
			want := 0
			for post, state := range map[publishing.PostID]publishing.State{
				stale: tc.stale, before: tc.before, since: tc.since, future: publishing.StateQueue,
			} {
				p := r.Root(post)
				if p.State != state {
					t.Errorf("the post of %s is %s, want %s", p.PublishDate, p.State, state)
				}
				if p.State == publishing.StateError {
					want++
				}
				if p.State == publishing.StateError && *p.ErrorCode != publishing.CodeMissed {
					t.Errorf("the post of %s ended as %s, want missed", p.PublishDate, *p.ErrorCode)
				}
			}
			if tc.since == publishing.StateError {
				want++ // its follower
			}
			if missed != want {
				t.Errorf("%d posts were given up, want %d", missed, want)
			}
		})
	}
}

func TestPause_UnknownOrganizationIsNotKnown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	none := id.New[tenancy.OrgTag]()
	r.OK(r.Store.InOrg(t.Context(), none, func(tx *db.Tx) error {
		if known, err := schedulerstore.Pause(t.Context(), tx, publishing.PauseInstance, none, "test"); known || err != nil {
			t.Errorf("got %v, %v for an organization that does not exist, want not known", known, err)
		}
		end := schedulerstore.PauseEnd{Scope: publishing.PauseInstance, Subject: none, By: "test"}
		if missed, known, done, err := schedulerstore.EndPause(t.Context(), tx, end, nil); missed != 0 || known || !done || err != nil {
			t.Errorf("its end returns %d, %v, %v, %v, want no effect", missed, known, done, err)
		}
		return nil
	}))
}

func TestEndPause_GivesUpManyPostsBeforeThePauseEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	r.SetPause(publishing.PauseInstance, r.Org, true, time.Hour)
	var many []publishing.Post
	for range schedulerstore.MaxGiveUp + 5 {
		many = append(many, fixture.Post(r.Org, c, time.Now())...)
	}
	r.Insert(r.Org, many...)
	r.Clock(`update post set due = now() - interval '2 hours'`)
	end := r.endOfStop(true, time.Hour)
	step := func(wantMissed int, wantDone bool) {
		t.Helper()
		r.OK(r.InOrg(func(tx *db.Tx) error {
			missed, known, done, err := schedulerstore.EndPause(t.Context(), tx, end, nil)
			if missed != wantMissed || done != wantDone || !known {
				t.Errorf("EndPause returns %d, %v, %v, want %d, true, %v", missed, known, done, wantMissed, wantDone)
			}
			return err
		}))
	}
	stillStopped := func() {
		t.Helper()
		if got := r.Claim(10); !r.isPaused(c) || len(got) != 0 {
			t.Errorf("got %+v claimed before the stop has ended, want none", got)
		}
	}
	step(0, false)
	stillStopped()
	posts, err := schedulerstore.FindKeptBack(t.Context(), r.Store, r.Org, end, nil, schedulerstore.MaxGiveUp)
	r.OK(err)
	if n, err := schedulerstore.GiveUpKeptBack(t.Context(), r.Store, r.Org, end, posts); n != len(posts) || err != nil {
		t.Fatalf("GiveUpKeptBack returns %d, %v, want %d", n, err, len(posts))
	}
	stillStopped() // a crash here would leave the same state
	fresh := r.Post(c, -time.Minute)
	step(5, true)
	if got := r.Claim(10); len(got) != 1 || got[0].Post != fresh {
		t.Errorf("claimed %+v after the end, want %s, which was written meanwhile", got, fresh)
	}
}

func TestEndPause_KeepsTheStopOfAMarkedOrganization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	r.SetPause(publishing.PauseInstance, r.Org, true, time.Hour)
	mark := func(sql string) {
		t.Helper()
		r.OK(r.DB.InRole(t.Context(), pg.Gate, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), sql)
			return err
		}))
	}
	for _, marked := range []string{"suspended_at", "deleted_at"} {
		mark(`update organization set ` + marked + ` = now()`)
		r.resume(true, time.Hour)
		if !r.isPaused(c) {
			t.Errorf("the stop ended while %s is set", marked)
		}
		mark(`update organization set ` + marked + ` = null`)
	}
	stopped, err := schedulerstore.Stopped(t.Context(), r.Store, []tenancy.OrgID{r.Org, id.New[tenancy.OrgTag]()})
	if err != nil || len(stopped) != 1 || stopped[0] != r.Org {
		t.Errorf("stopped are %v, %v, want the organization", stopped, err)
	}
	r.resume(true, time.Hour)
	if stopped, err := schedulerstore.Stopped(t.Context(), r.Store, []tenancy.OrgID{r.Org}); err != nil || len(stopped) != 0 {
		t.Errorf("stopped are %v, %v after the end, want none", stopped, err)
	}
}
