package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tenancy"
	"crier/tests/publishtest"
)

// bulk makes channels with one queued post each. All the posts became due at the same time, late
// ago.
func (r *rig) bulk(name string, channels int, late time.Duration) {
	r.Helper()
	r.OK(r.DB.InOrg(r.Context(), r.Org.UUID(), func(tx pgx.Tx) error {
		for _, sql := range []string{
			`insert into channel (org_id, id, connector, name, account_id, grade, credential) select $1, gen_random_uuid(), 'sandbox', 'c', $4 || i, 'A', 'x'
			 from generate_series(1, $2::int) i where $3::int >= 0 and $5::bigint is not null`,
			`insert into channel_queue (channel_id, org_id, shard, connector) select id, org_id, $3::int, connector
			 from channel where org_id = $1 and account_id like $4 || '%' and $2::int > 0 and $5::bigint is not null`,
			`insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date) select $1, gen_random_uuid(), gen_random_uuid(), id, $3::int, 'QUEUE',
			 now() - $5::bigint * interval '1 millisecond', now() from channel where org_id = $1 and account_id like $4 || '%' and $2::int > 0`,
		} {
			if _, err := tx.Exec(r.Context(), sql, r.Org, channels, tenancy.Shard(r.Org), name, late.Milliseconds()); err != nil {
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
	c := r.Channel()
	r.Post(c, -25*time.Hour)
	fresh := r.Post(c, -time.Hour) // it follows a post of its channel that is too late
	got := r.Claim(100)
	if len(got) != 1 || got[0].Post != fresh {
		t.Fatalf("%d posts are claimed, want the one that is not too late", len(got))
	}
	if round := r.ClaimBy(r.Lease, 100); len(round.Claimed) != 0 || len(round.Next) != 0 {
		t.Fatalf("stale posts keep their organization busy: %+v", round)
	}
	next, _, err := schedulerstore.Sweep(t.Context(), r.Store, r.Lease, time.Minute, 24*time.Hour)
	if r.OK(err); len(next) != 0 {
		t.Fatalf("a sweep wakes for stale posts: %v", next)
	}
}

func TestClaim_VisitsAWindowOfChannels(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bulk("idle", 9, -time.Hour)
	due := r.Post(r.Channel(), -time.Second) // channel ids grow, so it is not in the first window
	narrow := publishtest.ClaimRules()
	narrow.Window = 4
	want := dispatch.Want{Org: r.Org, Permits: 8}
	var seen []publishing.ChannelID
	for range 10 {
		round, err := schedulerstore.Claim(t.Context(), r.Store, r.Lease, []dispatch.Want{want}, dispatch.NoClaimLimits(), 1, narrow)
		r.OK(err)
		if len(round.Claimed) > 0 {
			if round.Claimed[0].Post != due {
				t.Fatal("another post is claimed")
			}
			return
		}
		last, more := round.More[r.Org]
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
					r.Post(r.ChannelAt(fmt.Sprintf("hangs-%d.example", n)), -time.Minute)
				}
			}
			busy := map[string]int{}
			free := permits
			for range permits { // all claimed posts stay in flight
				limits := dispatch.ClaimLimits{Busy: busy, Free: free}
				round, err := r.ClaimFor(r.Lease, limits, dispatch.Want{Org: r.Org, Permits: hanging})
				r.OK(err)
				for _, c := range round.Claimed {
					busy[c.Destination]++
					free--
				}
			}
			if want := permits / (hanging + 1); free < want-1 || free > want+1 {
				t.Fatalf("%d of %d permits are free beside %d servers that hang, want %d: %v", free, permits, hanging, want, busy)
			}
			healthy := r.Post(r.ChannelAt("healthy.example"), -time.Second)
			round, err := r.ClaimFor(r.Lease, dispatch.ClaimLimits{Busy: busy, Free: free}, dispatch.Want{Org: r.Org, Permits: free})
			if r.OK(err); len(round.Claimed) != 1 || round.Claimed[0].Post != healthy || len(round.AtLimit[r.Org]) != hanging {
				t.Fatalf("beside servers that hang are claimed %d posts, held back %v", len(round.Claimed), round.AtLimit)
			}
		})
	}
}

func TestGiveBack_ReturnsWhatALostClaimTook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post, text := r.Post(r.Channel(), -time.Second), r.Post(r.Channel(), -time.Second)
	wants := []dispatch.Want{{Org: r.Org, Permits: 5}}
	round, err := schedulerstore.Claim(t.Context(), r.Store, r.Lease, wants, dispatch.NoClaimLimits(), 77, publishtest.ClaimRules())
	if err != nil || len(round.Claimed) != 2 {
		t.Fatalf("claimed %+v (%v), want 2 posts", round.Claimed, err)
	}
	orgs, err := schedulerstore.GiveBack(t.Context(), r.Store, r.Lease, []int64{76, 78}, "test")
	if r.OK(err); len(orgs) != 0 {
		t.Fatal("claims that were answered are given back")
	}
	orgs, err = schedulerstore.GiveBack(t.Context(), r.Store, r.Lease, []int64{77}, "test")
	if r.OK(err); !slices.Equal(orgs, []tenancy.OrgID{r.Org}) {
		t.Fatalf("given back are posts of %v", orgs)
	}
	r.WantState(post, publishing.StateQueue)
	r.WantState(text, publishing.StateQueue)
	if got := r.Claim(5); len(got) != 2 || got[0].Attempt != 1 || got[1].Attempt != 1 {
		t.Fatalf("a lost claim counts as a try: %+v", got)
	}
}

func TestPause_LocksNoChannelWhileItWaitsForPosts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	post := r.Post(c, -time.Second)
	r.Claim(1)
	locked, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { // like a finish that has locked its post and then locks the channel
		ended <- r.Store.InOrg(t.Context(), r.Org, func(tx *db.Tx) error {
			if _, err := poststore.LockGroup(t.Context(), tx, r.GroupOf(post)); err != nil {
				return err
			}
			close(locked)
			<-release
			return nil
		})
	}()
	<-locked
	r.OK(r.InOrg(func(tx *db.Tx) error {
		_, err := schedulerstore.Pause(t.Context(), tx, publishing.PauseChannel, c, "test")
		return err
	}))
	// This waits until the pause is committed.
	r.Clock(`update channel_queue set done_at = now() where channel_id = $1`, c)
	close(release)
	r.OK(<-ended)
	r.OK(r.InOrg(func(tx *db.Tx) error {
		return schedulerstore.Revoke(t.Context(), tx, publishing.PauseChannel, c, "test")
	}))
	r.WantState(post, publishing.StateQueue)
}
