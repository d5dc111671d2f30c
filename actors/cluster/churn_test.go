package cluster_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"crier/actors/cluster"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tests/dbtest"
	"crier/tests/faultnet"
)

func TestMember_ShardsOfCutOffProcessAreTakenOver(t *testing.T) {
	t.Parallel()
	p, proxied, db := openProxied(t)
	exec(t, db, `insert into node (id, home, address, roles, expires_at)
		select gen_random_uuid(), gen_random_uuid(), '10.255.255.1:7000', '{worker}', now() - interval '1 minute' from generate_series(1, 50)`)
	var log bytes.Buffer
	m := joinWith(t, quick, "mine", cluster.Deps{DB: db, Log: slog.New(slog.NewTextHandler(&log, nil))})
	other := join(t, quick, proxied)
	joined := m.LastHeartbeat()
	eventually(t, "both own a share", func() bool { return ownEachShardOnce(m, other) && len(m.Lease().Shards) > 0 })
	p.Set(faultnet.Refuse)
	eventually(t, "its shards are taken over by the other", func() bool { return ownEachShardOnce(m) && ownedShards(t, db, other) == 0 })
	eventually(t, "the lease was renewed for twice its length", func() bool {
		return m.LastHeartbeat().Sub(joined) > 2*quick.LeaseTTL
	})
	p.Set(faultnet.Pass)
	eventually(t, "both own a share again", func() bool { return ownEachShardOnce(m, other) && len(other.Lease().Shards) > 0 })
	leave(t, other)
	leave(t, m)
	if lapsed(&log) {
		t.Errorf("the lease of the process that was not cut off lapsed:\n%s", &log)
	}
}

// lapsed reports whether a member that has left logged that its lease had lapsed.
func lapsed(log *bytes.Buffer) bool { return strings.Contains(log.String(), "the lease had expired") }

// ownedShards returns the number of shards that the member owns according to Postgres.
func ownedShards(t *testing.T, db *pg.DB, m *cluster.Member) (n int) {
	t.Helper()
	query(t, db, &n, `select count(*) from shard where owner = $1`, m.ID)
	return n
}

// callCounter counts the calls of Lost and Changed.
type callCounter struct{ lost, changed atomic.Int64 }

func (w *callCounter) deps(db *pg.DB) cluster.Deps {
	return cluster.Deps{
		DB: db, Log: slog.New(slog.DiscardHandler),
		Lost: func() { w.lost.Add(1) }, Changed: func() { w.changed.Add(1) },
	}
}

func TestSuspend_GivesShardsBackAndStaysMember(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	var calls callCounter
	first, second := joinWith(t, quick, "", calls.deps(db)), join(t, quick, db)
	defer leave(t, first)
	defer leave(t, second)
	eventually(t, "both own a share", func() bool { return ownEachShardOnce(first, second) && len(second.Lease().Shards) > 0 })
	lost, changed := calls.lost.Load(), calls.changed.Load()
	first.Suspend("a test")
	first.Suspend("again")
	if n := len(first.Lease().Shards); n != 0 {
		t.Errorf("got %d shards right after Suspend, want 0", n)
	}
	eventually(t, "the other owns every shard", func() bool { return ownEachShardOnce(second) && ownedShards(t, db, first) == 0 })
	if calls.lost.Load() == lost {
		t.Error("Lost was not called when the shards were given away")
	}
	lost = calls.lost.Load()
	last := first.LastHeartbeat()
	eventually(t, "it continues to renew its lease", func() bool { return first.LastHeartbeat().Sub(last) > quick.LeaseTTL })
	if n := len(first.Lease().Shards); n != 0 || second.LiveCount() != 2 {
		t.Errorf("got %d shards and %d members while suspended, want 0 and 2", n, second.LiveCount())
	}
	if l, c := calls.lost.Load()-lost, calls.changed.Load()-changed; l != 0 || c != 0 {
		t.Errorf("while suspended Lost was called %d times and Changed %d times, want none", l, c)
	}
	first.Resume()
	first.Resume()
	eventually(t, "both own a share again", func() bool {
		return ownEachShardOnce(first, second) && len(first.Lease().Shards) > 0 && calls.changed.Load() > changed
	})
}

func TestSuspend_WithoutOtherMembersLeavesShardsUnowned(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	m := join(t, quick, db)
	defer leave(t, m)
	m.Suspend("a test")
	free := func() (n int) {
		query(t, db, &n, `select count(*) from shard where owner is null`)
		return n
	}
	eventually(t, "no shard has an owner", func() bool { return free() == tenancy.Shards })
	m.Resume()
	eventually(t, "it owns every shard again", func() bool { return ownEachShardOnce(m) && ownedShards(t, db, m) == tenancy.Shards })
}

func TestSuspend_ImmediateResumeKeepsEveryShard(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	m := join(t, quick, db)
	defer leave(t, m)
	for range 100 {
		m.Suspend("a test")
		m.Resume()
	}
	last := m.LastHeartbeat()
	eventually(t, "ten heartbeats have passed", func() bool { return m.LastHeartbeat().Sub(last) > 10*quick.HeartbeatInterval })
	eventually(t, "it owns every shard", func() bool { return ownEachShardOnce(m) && ownedShards(t, db, m) == tenancy.Shards })
	var leaving bool
	if query(t, db, &leaving, `select leaving from node where id = $1`, m.ID); leaving {
		t.Error("got a node that is leaving, want one that is not")
	}
}

func TestSuspend_DuringOutageTakesEffectAfterIt(t *testing.T) {
	t.Parallel()
	p, proxied, db := openProxied(t)
	var calls callCounter
	first, second := joinWith(t, quick, "", calls.deps(proxied)), join(t, quick, db)
	defer leave(t, first)
	defer leave(t, second)
	eventually(t, "both own a share", func() bool { return ownEachShardOnce(first, second) && len(second.Lease().Shards) > 0 })
	lost, mine := calls.lost.Load(), first.Lease().Shards[0]
	p.Set(faultnet.Refuse)
	first.Suspend("a test")
	if n := len(first.Lease().Shards); n != 0 {
		t.Errorf("got %d shards right after Suspend, want 0", n)
	}
	eventually(t, "it does not own the shard any longer", func() bool {
		_, here := first.Place(mine)
		return !here && calls.lost.Load() > lost
	})
	p.Set(faultnet.Pass)
	eventually(t, "the other owns every shard", func() bool { return ownEachShardOnce(second) && ownedShards(t, db, first) == 0 })
	p.Set(faultnet.Refuse)
	first.Resume()
	p.Set(faultnet.Pass)
	eventually(t, "both own a share again", func() bool {
		return ownEachShardOnce(first, second) && len(first.Lease().Shards) > 0
	})
}

func TestRelease_LaterResumeTakesNoShards(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	m := join(t, quick, db)
	defer leave(t, m)
	m.Suspend("a test")
	eventually(t, "it owns no shard", func() bool { return ownedShards(t, db, m) == 0 })
	if err := m.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Resume()
	last := m.LastHeartbeat()
	eventually(t, "ten heartbeats have passed", func() bool { return m.LastHeartbeat().Sub(last) > 10*quick.HeartbeatInterval })
	if n := ownedShards(t, db, m); n != 0 {
		t.Errorf("got %d shards after Release, want 0", n)
	}
}

func TestHeartbeat_ReplacesSilentConnectionBeforeLeaseLapses(t *testing.T) {
	t.Parallel()
	p, proxied, _ := openProxied(t)
	var log bytes.Buffer
	m := joinWith(t, quick, "", cluster.Deps{DB: proxied, Log: slog.New(slog.NewTextHandler(&log, nil))})
	p.Set(faultnet.Swallow)
	p.Set(faultnet.Pass)
	dead := time.Now()
	eventually(t, "the lease is renewed", func() bool { return m.LastHeartbeat().After(dead) })
	eventually(t, "it owns every shard", func() bool { return ownEachShardOnce(m) })
	leave(t, m)
	if lapsed(&log) {
		t.Errorf("the lease lapsed:\n%s", &log)
	}
}

func TestHeartbeat_RecoversAfterPostgresDidNotAnswer(t *testing.T) {
	t.Parallel()
	p, proxied, db := openProxied(t)
	m := join(t, quick, proxied)
	defer leave(t, m)
	p.Set(faultnet.Swallow)
	alive := func() (alive bool) {
		query(t, db, &alive, `select expires_at > now() from node where id = $1`, m.ID)
		return alive
	}
	eventually(t, "the lease lapses", func() bool { return !alive() })
	p.Set(faultnet.Pass)
	eventually(t, "it owns every shard again", func() bool { return alive() && ownEachShardOnce(m) && ownedShards(t, db, m) == tenancy.Shards })
}

func TestLeave_EndsMembershipWhenItsConnectionIsSilent(t *testing.T) {
	t.Parallel()
	p, proxied, db := openProxied(t)
	rare := quick
	rare.HeartbeatInterval = rare.LeaseTTL / 2 // Leave finds the silent connection, not a heartbeat
	m := join(t, rare, proxied)
	p.Set(faultnet.Swallow)
	p.Set(faultnet.Pass)
	leave(t, m)
	var member bool
	query(t, db, &member, `select exists (select from node where id = $1)`, m.ID)
	if n := ownedShards(t, db, m); member || n != 0 {
		t.Errorf("after Leave: member %t with %d shards, want no member", member, n)
	}
}
