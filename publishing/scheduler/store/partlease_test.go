package store_test

import (
	"testing"
	"time"

	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

func TestClaim_ServesOnlyShardsOfItsLease(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mine := tenancy.Shard(r.Org)
	part := dispatch.Lease{Holder: r.Lease.Holder, Shards: r.Lease.Shards[mine : mine+1]}
	now, later := r.Post(r.Channel(), -time.Second), r.Post(r.Channel(), time.Minute)
	round := r.ClaimBy(part, 5)
	if len(round.Claimed) != 1 || round.Claimed[0].Post != now {
		t.Fatalf("claimed %+v; later is %v", round.Claimed, later)
	}
	if next, ok := round.Next[r.Org]; !ok || next.Before(round.Now) {
		t.Fatalf("next is %v (%v), want the time of the later post", next, ok)
	}
	other := (mine + 1) % tenancy.Shards
	otherShard := dispatch.Lease{Holder: r.Lease.Holder, Shards: r.Lease.Shards[other : other+1]}
	if round := r.ClaimBy(otherShard, 5); len(round.Claimed) != 0 || len(round.Next) != 0 {
		t.Fatalf("got %+v, want nothing of a shard that is not in the lease", round)
	}
}
