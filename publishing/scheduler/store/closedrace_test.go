package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	accessstore "crier/publishing/access/store"
	"crier/publishing/scheduler/dispatch"
)

// interruptedRig is a rig whose claims can be stopped between reading the channels and locking
// them. Where a claim checks its lease, it waits for an advisory lock of the owner. It waits
// without a limit, because after a timeout the claim would be repeated and its second statement
// would see the change from the start.
func interruptedRig(t *testing.T) (r *rig, owner *pgx.Conn) {
	t.Helper()
	r = newRig(t)
	owner, err := pgx.Connect(t.Context(), r.Address)
	r.OK(err)
	t.Cleanup(func() { _ = owner.Close(context.WithoutCancel(t.Context())) })
	_, err = owner.Exec(t.Context(), `
		create function pass() returns boolean language plpgsql volatile as $$
			begin perform set_config('lock_timeout', '0', true), pg_advisory_xact_lock_shared(1); return true; end $$;
		alter table node enable row level security;
		create policy pass on node using (pass())`)
	r.OK(err)
	return r, owner
}

// during calls do while a claim is between reading and locking, and returns the claimed posts.
func (r *rig) during(owner *pgx.Conn, do func()) []dispatch.Claimed {
	r.Helper()
	exec := func(sql string) {
		r.Helper()
		_, err := owner.Exec(r.Context(), sql)
		r.OK(err)
	}
	exec(`select pg_advisory_lock(1)`)
	claimed := make(chan dispatch.ClaimResult, 1)
	failed := make(chan error, 1)
	go func() {
		round, err := r.ClaimFor(r.Lease, dispatch.NoClaimLimits(), dispatch.Want{Org: r.Org, Permits: 10})
		failed <- err
		claimed <- round
	}()
	for waits := false; !waits; {
		select {
		case err := <-failed:
			r.Fatalf("the claim did not wait where it checks its lease: %v", err)
		case <-time.After(time.Millisecond):
		}
		r.OK(owner.QueryRow(r.Context(), `select exists (select from pg_locks where locktype = 'advisory' and not granted
			and database = (select oid from pg_database where datname = current_database()))`).Scan(&waits))
	}
	do()
	exec(`select pg_advisory_unlock(1)`)
	r.OK(<-failed)
	return (<-claimed).Claimed
}

// A claim first reads channels and then locks them. It must see what was committed in between.
func TestClaim_SkipsPostThatChangesBeforeItsLock(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *rig, c publishing.ChannelID, post publishing.PostID){
		"a channel that is paused": func(r *rig, c publishing.ChannelID, _ publishing.PostID) {
			r.SetPause(publishing.PauseChannel, c, true, time.Hour)
		},
		"a channel whose organization is paused": func(r *rig, _ publishing.ChannelID, _ publishing.PostID) {
			r.SetPause(publishing.PauseOrganization, r.Org, true, time.Hour)
		},
		"a channel whose access is refused": func(r *rig, c publishing.ChannelID, _ publishing.PostID) {
			r.OK(accessstore.Park(r.Context(), r.Store, r.Org, c, []byte("sealed"), "reason"))
		},
		"a channel that another claim has": func(r *rig, c publishing.ChannelID, _ publishing.PostID) {
			r.Clock(`update channel_queue set busy_post = gen_random_uuid() where channel_id = $1`, c)
		},
		"a channel that must wait": func(r *rig, c publishing.ChannelID, _ publishing.PostID) {
			r.Clock(`update channel_queue set not_before = now() + interval '1 hour' where channel_id = $1`, c)
		},
		"a post that is edited": func(r *rig, _ publishing.ChannelID, post publishing.PostID) {
			r.OK(r.Edit(post, "new"))
			// The post is due again as before the edit.
			r.Clock(`update post set due = now() - interval '1 minute' where id = $1`, post)
		},
		"a post that is deleted": func(r *rig, _ publishing.ChannelID, post publishing.PostID) { r.Delete(post) },
		"a post that is moved": func(r *rig, _ publishing.ChannelID, post publishing.PostID) {
			r.Clock(`update post set due = now() + interval '1 hour' where id = $1`, post)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, owner := interruptedRig(t)
			channel, other := r.Channel(), r.Channel()
			post := r.Post(channel, -time.Second)
			open := r.Post(other, -time.Second)
			for _, c := range r.during(owner, func() { change(r, channel, post) }) {
				if c.Post == post {
					t.Error("it is claimed")
				} else if c.Post != open {
					t.Errorf("claimed %+v", c)
				}
			}
		})
	}
	t.Run("takes an unchanged post", func(t *testing.T) {
		t.Parallel()
		r, owner := interruptedRig(t)
		post := r.Post(r.Channel(), -time.Second)
		if got := r.during(owner, func() {}); len(got) != 1 || got[0].Post != post {
			t.Errorf("claimed %+v", got)
		}
	})
}
