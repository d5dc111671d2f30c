package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	publishingdb "crier/publishing/db"
	poststore "crier/publishing/post/store"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tenancy"
	"crier/tests/dbtest"
)

// bulk makes channels with one queued post each, all due at the same time, late ago.
func (r *rig) bulk(name string, channels int, late time.Duration) {
	r.Helper()
	r.ok(r.db.InOrg(r.Context(), r.org.UUID(), func(tx pgx.Tx) error {
		for _, sql := range []string{
			`insert into channel (org_id, id, connector, name, account_id, grade, credential) select $1, gen_random_uuid(), 'sandbox', 'c', $4 || i, 'A', 'x'
			 from generate_series(1, $2::int) i where $3::int >= 0 and $5::bigint is not null`,
			`insert into channel_queue (channel_id, org_id, shard, connector) select id, org_id, $3::int, connector
			 from channel where org_id = $1 and account_id like $4 || '%' and $2::int > 0 and $5::bigint is not null`,
			`insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date) select $1, gen_random_uuid(), gen_random_uuid(), id, $3::int, 'QUEUE',
			 now() - $5::bigint * interval '1 millisecond', now() from channel where org_id = $1 and account_id like $4 || '%' and $2::int > 0`,
		} {
			if _, err := tx.Exec(r.Context(), sql, r.org, channels, tenancy.Shard(r.org), name, late.Milliseconds()); err != nil {
				return err
			}
		}
		return nil
	}))
}

func TestClaim_TakesNothingPastMaxLate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bulk("stale", 30, 25*time.Hour)
	c := r.channel()
	r.post(c, -25*time.Hour)
	fresh := r.post(c, -time.Hour) // after a post of its channel that is too late
	got := r.claim(100)
	if len(got) != 1 || got[0].Post != fresh {
		t.Fatalf("%d posts are claimed, want the one that is not too late", len(got))
	}
	if round := r.claimBy(r.lease, 100); len(round.Claimed) != 0 || len(round.Next) != 0 {
		t.Fatalf("stale posts keep their organization busy: %+v", round)
	}
	next, _, err := schedulerstore.Sweep(t.Context(), r.store, r.lease, time.Minute, 24*time.Hour)
	if r.ok(err); len(next) != 0 {
		t.Fatalf("a sweep wakes for stale posts: %v", next)
	}
}

func TestClaim_VisitsAWindowOfChannels(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bulk("idle", 9, -time.Hour)
	due := r.post(r.channel(), -time.Second) // channel ids grow, so it is not in the first window
	narrow := rules()
	narrow.Window = 4
	want := publishing.Want{Org: r.org, Permits: 8}
	var seen []publishing.ChannelID
	for range 10 {
		round, err := schedulerstore.Claim(t.Context(), r.store, r.lease, []publishing.Want{want}, publishing.NoClaimLimits(), 1, narrow)
		r.ok(err)
		if len(round.Claimed) > 0 {
			if round.Claimed[0].Post != due {
				t.Fatal("another post is claimed")
			}
			return
		}
		last, more := round.More[r.org]
		if !more || slices.Contains(seen, last) {
			t.Fatalf("the due post was not found; the windows ended at %v", seen)
		}
		seen = append(seen, last)
		want.After = last
	}
	t.Fatal("the windows do not end")
}

func TestClaim_DestinationHoldsFewerPermitsThanAreFree(t *testing.T) {
	t.Parallel()
	for _, hanging := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("%d hanging", hanging), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			const permits = 30
			for range permits {
				for n := range hanging {
					r.post(r.to(fmt.Sprintf("hangs-%d.example", n)), -time.Minute)
				}
			}
			busy := map[string]int{}
			free := permits
			for range permits { // all claimed posts stay in flight
				limits := publishing.ClaimLimits{Busy: busy, Free: free}
				round, err := r.claimOf(r.lease, limits, publishing.Want{Org: r.org, Permits: hanging})
				r.ok(err)
				for _, c := range round.Claimed {
					busy[c.Destination]++
					free--
				}
			}
			if want := permits / (hanging + 1); free < want-1 || free > want+1 {
				t.Fatalf("%d of %d permits are free beside %d servers that hang, want %d: %v", free, permits, hanging, want, busy)
			}
			healthy := r.post(r.to("healthy.example"), -time.Second)
			round, err := r.claimOf(r.lease, publishing.ClaimLimits{Busy: busy, Free: free}, publishing.Want{Org: r.org, Permits: free})
			if r.ok(err); len(round.Claimed) != 1 || round.Claimed[0].Post != healthy || len(round.AtLimit[r.org]) != hanging {
				t.Fatalf("beside servers that hang are claimed %d posts, held back %v", len(round.Claimed), round.AtLimit)
			}
		})
	}
}

// to connects a channel whose posts go to a server.
func (r *rig) to(server string) publishing.ChannelID {
	r.Helper()
	c := r.channel()
	r.clock(`update channel_queue set destination = $2 where channel_id = $1`, c, server)
	return c
}

func TestGiveBack_ReturnsWhatALostClaimTook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post, text := r.post(r.channel(), -time.Second), r.post(r.channel(), -time.Second)
	if round, err := schedulerstore.Claim(t.Context(), r.store, r.lease, []publishing.Want{{Org: r.org, Permits: 5}}, publishing.NoClaimLimits(), 77, rules()); err != nil || len(round.Claimed) != 2 {
		t.Fatalf("claimed %+v (%v), want 2 posts", round.Claimed, err)
	}
	orgs, err := schedulerstore.GiveBack(t.Context(), r.store, r.lease, []int64{76, 78}, "test")
	if r.ok(err); len(orgs) != 0 {
		t.Fatal("claims that were answered are given back")
	}
	orgs, err = schedulerstore.GiveBack(t.Context(), r.store, r.lease, []int64{77}, "test")
	if r.ok(err); !slices.Equal(orgs, []tenancy.OrgID{r.org}) {
		t.Fatalf("given back are posts of %v", orgs)
	}
	r.expect(post, publishing.StateQueue)
	r.expect(text, publishing.StateQueue)
	if got := r.claim(5); len(got) != 2 || got[0].Attempt != 1 || got[1].Attempt != 1 {
		t.Fatalf("a lost claim counts as a try: %+v", got)
	}
}

func TestPause_LocksNoChannelWhileItWaitsForPosts(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	r := newRigOn(t, db)
	c := r.channel()
	post := r.post(c, -time.Second)
	r.claim(1)
	locked, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { // as a finish that has locked its post and then locks the channel
		ended <- r.store.InOrg(t.Context(), r.org, func(tx *publishingdb.Tx) error {
			if _, err := poststore.LockGroup(t.Context(), tx, r.groupOf(post)); err != nil {
				return err
			}
			close(locked)
			<-release
			return nil
		})
	}()
	<-locked
	r.ok(r.inOrg(func(tx *publishingdb.Tx) error {
		_, err := schedulerstore.Pause(t.Context(), tx, publishing.PauseChannel, c, "test")
		return err
	}))
	r.clock(`update channel_queue set done_at = now() where channel_id = $1`, c) // this waits until the pause is committed
	close(release)
	r.ok(<-ended)
	r.ok(r.inOrg(func(tx *publishingdb.Tx) error {
		return schedulerstore.Revoke(t.Context(), tx, publishing.PauseChannel, c, "test")
	}))
	r.expect(post, publishing.StateQueue)
}
