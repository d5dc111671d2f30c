package cluster_test

import (
	"bytes"
	"context"
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

// neverAnswers is the address of lost machines: a probe there returns only when the test ends. It counts how many run
// at once.
type neverAnswers struct {
	end  chan struct{}
	busy atomic.Int64
	most atomic.Int64
}

func (n *neverAnswers) refuses(context.Context, string) bool {
	busy := n.busy.Add(1)
	defer n.busy.Add(-1)
	for most := n.most.Load(); busy > most && !n.most.CompareAndSwap(most, busy); most = n.most.Load() {
	}
	<-n.end
	return false
}

func TestMember_SilentDeadProcessesHoldNothingUp(t *testing.T) {
	t.Parallel()
	p, proxied, db := through(t)
	exec(t, db, `insert into node (id, home, address, roles, expires_at)
		select gen_random_uuid(), gen_random_uuid(), '10.255.255.1:7000', '{worker}', now() - interval '1 minute'
		from generate_series(1, 50)`)
	lost := &neverAnswers{end: make(chan struct{})}
	other := join(t, quick, proxied, home(t, t.TempDir()))
	var log bytes.Buffer
	m, err := cluster.Join(t.Context(), quick, "mine", cluster.Deps{
		DB: db, Home: home(t, t.TempDir()), Log: slog.New(slog.NewTextHandler(&log, nil)), Refuses: lost.refuses,
	})
	if err != nil {
		t.Fatal(err)
	}
	joined := m.LastBeat()
	eventually(t, "eight probes run", func() bool { return lost.busy.Load() == 8 })
	eventually(t, "both have a share", func() bool { return apart(m, other) && len(m.Lease().Shards) > 0 })
	p.Set(faultnet.Refuse)
	eventually(t, "the shards of the process that lost its connection are taken over", func() bool {
		return len(m.Lease().Shards) == tenancy.Shards
	})
	eventually(t, "the lease is renewed for longer than it lasts", func() bool {
		return m.LastBeat().Sub(joined) > 2*quick.TTL
	})
	if most := lost.most.Load(); most != 8 {
		t.Errorf("%d probes ran at once, want 8", most)
	}
	p.Set(faultnet.Pass)
	leave(t, other)
	close(lost.end)
	leave(t, m)
	if lapsed(&log) {
		t.Errorf("the lease lapsed:\n%s", &log)
	}
}

// lapsed returns true when a member that has left wrote that its lease had lapsed.
func lapsed(log *bytes.Buffer) bool { return strings.Contains(log.String(), "the lease had lapsed") }

// owned is how many shards the process has by the word of Postgres.
func owned(t *testing.T, db *pg.DB, m *cluster.Member) (n int) {
	t.Helper()
	query(t, db, &n, `select count(*) from shard where owner = $1`, m.ID)
	return n
}

func TestSuspend_GivesTheShardsAwayAndStaysMember(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	first, second := join(t, quick, db, home(t, t.TempDir())), join(t, quick, db, home(t, t.TempDir()))
	defer leave(t, first)
	defer leave(t, second)
	eventually(t, "both have a share", func() bool { return apart(first, second) && len(second.Lease().Shards) > 0 })
	first.Suspend("a test")
	first.Suspend("again")
	if n := len(first.Lease().Shards); n != 0 {
		t.Errorf("%d shards right after Suspend, want 0", n)
	}
	eventually(t, "the other has all", func() bool { return apart(second) && owned(t, db, first) == 0 })
	last := first.LastBeat()
	eventually(t, "it goes on renewing its lease", func() bool { return first.LastBeat().Sub(last) > quick.TTL })
	if n := len(first.Lease().Shards); n != 0 || second.Seen() != 2 {
		t.Errorf("suspended it has %d shards, want 0; %d members are seen, want 2", n, second.Seen())
	}
	first.Resume()
	first.Resume()
	eventually(t, "both have a share again", func() bool {
		return apart(first, second) && len(first.Lease().Shards) > 0
	})
}

func TestSuspend_AloneLeavesTheShardsUnowned(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	m := join(t, quick, db, home(t, t.TempDir()))
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
	m := join(t, quick, db, home(t, t.TempDir()))
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
	first := join(t, quick, proxied, home(t, t.TempDir()))
	second := join(t, quick, db, home(t, t.TempDir()))
	defer leave(t, first)
	defer leave(t, second)
	eventually(t, "both have a share", func() bool { return apart(first, second) && len(second.Lease().Shards) > 0 })
	p.Set(faultnet.Refuse)
	first.Suspend("a test")
	if n := len(first.Lease().Shards); n != 0 {
		t.Errorf("%d shards right after Suspend, want 0", n)
	}
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
	m := join(t, quick, db, home(t, t.TempDir()))
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
	m, err := cluster.Join(t.Context(), quick, "", cluster.Deps{
		DB: proxied, Home: home(t, t.TempDir()), Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
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
	m := join(t, quick, proxied, home(t, t.TempDir()))
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

func TestBeat_TheLockIsHeldAgainAfterAnotherSessionHadIt(t *testing.T) {
	t.Parallel()
	p, proxied, db := through(t)
	m := join(t, quick, proxied, home(t, t.TempDir()))
	defer leave(t, m)
	key := `hashtextextended('crier node ' || $1::text, 0)`
	holder, err := db.Direct(t.Context(), pg.Clock)
	if err != nil {
		t.Fatal(err)
	}
	p.Set(faultnet.Refuse)
	eventually(t, "the lock is free", func() (free bool) {
		if err := holder.QueryRow(t.Context(), `select pg_try_advisory_lock(`+key+`)`, m.ID).Scan(&free); err != nil {
			t.Fatal(err)
		}
		return free
	})
	p.Set(faultnet.Pass)
	last := m.LastBeat()
	eventually(t, "it beats without its lock", func() bool { return m.LastBeat().After(last) })
	if err := holder.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it holds its lock", func() (held bool) {
		query(t, db, &held, `select not pg_try_advisory_xact_lock(`+key+`)`, m.ID)
		return held
	})
}
