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

func TestMember_ShardsOfACutOffProcessAreTakenOver(t *testing.T) {
	t.Parallel()
	p, proxied, db := through(t)
	exec(t, db, `insert into node (id, home, address, roles, expires_at)
		select gen_random_uuid(), gen_random_uuid(), '10.255.255.1:7000', '{worker}', now() - interval '1 minute' from generate_series(1, 50)`)
	var log bytes.Buffer
	m := joinWith(t, quick, "mine", cluster.Deps{DB: db, Log: slog.New(slog.NewTextHandler(&log, nil))})
	other := join(t, quick, proxied)
	joined := m.LastBeat()
	eventually(t, "both have a share", func() bool { return apart(m, other) && len(m.Lease().Shards) > 0 })
	p.Set(faultnet.Refuse)
	eventually(t, "its shards are taken over", func() bool { return apart(m) && owned(t, db, other) == 0 })
	eventually(t, "the lease is renewed for longer than it lasts", func() bool {
		return m.LastBeat().Sub(joined) > 2*quick.TTL
	})
	p.Set(faultnet.Pass)
	eventually(t, "both have a share again", func() bool { return apart(m, other) && len(other.Lease().Shards) > 0 })
	leave(t, other)
	leave(t, m)
	if lapsed(&log) {
		t.Errorf("the lease of the process that was not cut off lapsed:\n%s", &log)
	}
}

// lapsed returns true when a member that has left wrote that its lease had lapsed.
func lapsed(log *bytes.Buffer) bool { return strings.Contains(log.String(), "the lease had lapsed") }

// owned is how many shards the process has as Postgres knows it.
func owned(t *testing.T, db *pg.DB, m *cluster.Member) (n int) {
	t.Helper()
	query(t, db, &n, `select count(*) from shard where owner = $1`, m.ID)
	return n
}

// watched counts the calls of Lost and Changed.
type watched struct{ lost, changed atomic.Int64 }

func (w *watched) deps(db *pg.DB) cluster.Deps {
	return cluster.Deps{
		DB: db, Log: slog.New(slog.DiscardHandler),
		Lost: func() { w.lost.Add(1) }, Changed: func() { w.changed.Add(1) },
	}
}

func TestSuspend_GivesTheShardsAwayAndStaysMember(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	var calls watched
	first, second := joinWith(t, quick, "", calls.deps(db)), join(t, quick, db)
	defer leave(t, first)
	defer leave(t, second)
	eventually(t, "both have a share", func() bool { return apart(first, second) && len(second.Lease().Shards) > 0 })
	lost, changed := calls.lost.Load(), calls.changed.Load()
	first.Suspend("a test")
	first.Suspend("again")
	if n := len(first.Lease().Shards); n != 0 {
		t.Errorf("%d shards right after Suspend, want 0", n)
	}
	eventually(t, "the other has all", func() bool { return apart(second) && owned(t, db, first) == 0 })
	if calls.lost.Load() == lost {
		t.Error("Lost was not called when the shards were given away")
	}
	lost = calls.lost.Load()
	last := first.LastBeat()
	eventually(t, "it goes on renewing its lease", func() bool { return first.LastBeat().Sub(last) > quick.TTL })
	if n := len(first.Lease().Shards); n != 0 || second.Seen() != 2 {
		t.Errorf("suspended it has %d shards, want 0; %d members are seen, want 2", n, second.Seen())
	}
	if l, c := calls.lost.Load()-lost, calls.changed.Load()-changed; l != 0 || c != 0 {
		t.Errorf("while suspended Lost was called %d times and Changed %d times, want none", l, c)
	}
	first.Resume()
	first.Resume()
	eventually(t, "both have a share again", func() bool {
		return apart(first, second) && len(first.Lease().Shards) > 0 && calls.changed.Load() > changed
	})
}

func TestSuspend_AloneLeavesTheShardsUnowned(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	m := join(t, quick, db)
	defer leave(t, m)
	m.Suspend("a test")
	free := func() (n int) {
		query(t, db, &n, `select count(*) from shard where owner is null`)
		return n
	}
	eventually(t, "nobody has a shard", func() bool { return free() == tenancy.Shards })
	m.Resume()
	eventually(t, "it has all again", func() bool { return apart(m) && owned(t, db, m) == tenancy.Shards })
}

func TestSuspend_ResumedAtOnceKeepsEveryShard(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	m := join(t, quick, db)
	defer leave(t, m)
	for range 100 {
		m.Suspend("a test")
		m.Resume()
	}
	last := m.LastBeat()
	eventually(t, "some beats went by", func() bool { return m.LastBeat().Sub(last) > 10*quick.Beat })
	eventually(t, "it has all", func() bool { return apart(m) && owned(t, db, m) == tenancy.Shards })
	var leaving bool
	if query(t, db, &leaving, `select leaving from node where id = $1`, m.ID); leaving {
		t.Error("it is marked as leaving")
	}
}

func TestSuspend_WithoutPostgresTakesEffectWhenItIsBack(t *testing.T) {
	t.Parallel()
	p, proxied, db := through(t)
	var calls watched
	first, second := joinWith(t, quick, "", calls.deps(proxied)), join(t, quick, db)
	defer leave(t, first)
	defer leave(t, second)
	eventually(t, "both have a share", func() bool { return apart(first, second) && len(second.Lease().Shards) > 0 })
	lost, mine := calls.lost.Load(), first.Lease().Shards[0]
	p.Set(faultnet.Refuse)
	first.Suspend("a test")
	if n := len(first.Lease().Shards); n != 0 {
		t.Errorf("%d shards right after Suspend, want 0", n)
	}
	eventually(t, "its actors are dropped", func() bool {
		_, here := first.Place(mine)
		return !here && calls.lost.Load() > lost
	})
	p.Set(faultnet.Pass)
	eventually(t, "the other has all", func() bool { return apart(second) && owned(t, db, first) == 0 })
	p.Set(faultnet.Refuse)
	first.Resume()
	p.Set(faultnet.Pass)
	eventually(t, "both have a share again", func() bool {
		return apart(first, second) && len(first.Lease().Shards) > 0
	})
}

func TestRelease_EndsASuspensionForGood(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	m := join(t, quick, db)
	defer leave(t, m)
	m.Suspend("a test")
	eventually(t, "it has no shard", func() bool { return owned(t, db, m) == 0 })
	if err := m.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Resume()
	last := m.LastBeat()
	eventually(t, "some beats went by", func() bool { return m.LastBeat().Sub(last) > 10*quick.Beat })
	if n := owned(t, db, m); n != 0 {
		t.Errorf("it took %d shards after Release", n)
	}
}

func TestBeat_ASilentConnectionIsReplacedBeforeTheLeaseLapses(t *testing.T) {
	t.Parallel()
	p, proxied, _ := through(t)
	var log bytes.Buffer
	m := joinWith(t, quick, "", cluster.Deps{DB: proxied, Log: slog.New(slog.NewTextHandler(&log, nil))})
	p.Set(faultnet.Swallow)
	p.Set(faultnet.Pass)
	dead := time.Now()
	eventually(t, "the lease is renewed", func() bool { return m.LastBeat().After(dead) })
	eventually(t, "it still has all", func() bool { return apart(m) })
	leave(t, m)
	if lapsed(&log) {
		t.Errorf("the lease lapsed:\n%s", &log)
	}
}

func TestBeat_GoesOnAfterAPostgresThatAnsweredNobody(t *testing.T) {
	t.Parallel()
	p, proxied, db := through(t)
	m := join(t, quick, proxied)
	defer leave(t, m)
	p.Set(faultnet.Swallow)
	alive := func() (alive bool) {
		query(t, db, &alive, `select expires_at > now() from node where id = $1`, m.ID)
		return alive
	}
	eventually(t, "the lease lapses", func() bool { return !alive() })
	p.Set(faultnet.Pass)
	eventually(t, "it goes on", func() bool { return alive() && apart(m) && owned(t, db, m) == tenancy.Shards })
}
