package cluster_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"crier/actors/cluster"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tests/dbtest"
)

func TestMain(m *testing.M) {
	// The library counts dead letters for a while after its actor system has stopped.
	const throttle = "github.com/asynkron/protoactor-go/actor.New"
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction(throttle+"DeadLetter.NewThrottle.func4.1"), goleak.IgnoreAnyFunction(throttle+"Throttle.func1.1"))
}

var quick = cluster.Config{LeaseTTL: 3 * time.Second, HeartbeatInterval: 50 * time.Millisecond, Roles: []string{cluster.RoleWorker}}

func home(t *testing.T, dir string) *cluster.Home {
	t.Helper()
	h, err := cluster.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() }) // a test may have closed it
	return h
}

func join(t *testing.T, cfg cluster.Config, db *pg.DB) *cluster.Member {
	t.Helper()
	return joinWith(t, cfg, "", cluster.Deps{DB: db, Log: slog.New(slog.DiscardHandler)})
}

func joinWith(t *testing.T, cfg cluster.Config, address string, deps cluster.Deps) *cluster.Member {
	t.Helper()
	cfg.Roles = []string{cluster.RoleWorker}
	if deps.Home == nil {
		deps.Home = home(t, t.TempDir())
	}
	deps.Owners = cluster.NewOwners(deps.Log)
	m, err := cluster.Join(t.Context(), cfg, address, deps)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func leave(t *testing.T, m *cluster.Member) {
	t.Helper()
	if err := m.Leave(context.Background()); err != nil {
		t.Error(err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func exec(t *testing.T, db *pg.DB, sql string, args ...any) {
	t.Helper()
	if err := db.InRole(t.Context(), pg.Clock, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), sql, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestJoin_OnlyMemberOwnsEveryShard(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	m := join(t, quick, db)
	defer leave(t, m)
	if n := len(m.Lease().Shards); n != tenancy.Shards {
		t.Fatalf("got %d shards, want %d", n, tenancy.Shards)
	}
}

// insertDeadNode inserts a node that owns every shard and does not renew its lease.
func insertDeadNode(t *testing.T, db *pg.DB, home uuid.UUID) *cluster.Member {
	t.Helper()
	m := &cluster.Member{ID: uuid.New()}
	exec(t, db, `insert into node (id, home, address, roles, expires_at) values ($1, $2, '', '{worker}', now() + interval '1 hour')`, m.ID, home)
	exec(t, db, `update shard set owner = $1`, m.ID)
	return m
}

func TestJoin_SameHomeTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	h := home(t, t.TempDir())
	insertDeadNode(t, db, h.ID)
	next := joinWith(t, quick, "", cluster.Deps{DB: db, Home: h, Log: slog.New(slog.DiscardHandler)})
	defer leave(t, next)
	if n := len(next.Lease().Shards); n != tenancy.Shards || next.LiveCount() != 1 {
		t.Fatalf("got %d shards and %d members, want %d and 1", n, next.LiveCount(), tenancy.Shards)
	}
}

func TestMember_DeadProcessKeepsShardsUntilLeaseExpires(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	lost := insertDeadNode(t, db, uuid.New())
	next := join(t, quick, db)
	defer leave(t, next)
	first := next.LastHeartbeat()
	eventually(t, "ten heartbeats have passed", func() bool { return next.LastHeartbeat().Sub(first) > 10*quick.HeartbeatInterval })
	if n := len(next.Lease().Shards); n != 0 || ownedShards(t, db, lost) != tenancy.Shards {
		t.Fatalf("got %d shards before the lease expired, want 0", n)
	}
	exec(t, db, `update node set expires_at = now() where id = $1`, lost.ID)
	eventually(t, "the other member owns every shard", func() bool { return ownEachShardOnce(next) && ownedShards(t, db, next) == tenancy.Shards })
}

func TestMember_TakesOnlyShardsGivenBack(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	first := join(t, cluster.Config{LeaseTTL: time.Hour, HeartbeatInterval: time.Hour}, db)
	second := join(t, quick, db)
	defer leave(t, second)
	eventually(t, "both own a share, and no shard is owned twice", func() bool {
		return ownEachShardOnce(first, second) && len(second.Lease().Shards) > 0
	})
	leave(t, first)
	eventually(t, "the second member owns every shard", func() bool { return len(second.Lease().Shards) == tenancy.Shards })
}

func TestMember_DeletedNodeJoinsAgain(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	m := join(t, quick, db)
	defer leave(t, m)
	exec(t, db, `delete from node where id = $1`, m.ID)
	eventually(t, "its node exists again and it owns every shard", func() bool {
		var known bool
		query(t, db, &known, `select exists (select from node where id = $1)`, m.ID)
		return known && ownEachShardOnce(m) && ownedShards(t, db, m) == tenancy.Shards
	})
}

func TestJoin_DeletesNodesExpiredADayAgo(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	exec(t, db, `insert into node (id, home, address, roles, expires_at)
		select gen_random_uuid(), gen_random_uuid(), '', '{worker}', now() - hours * interval '1 hour' from unnest(array[23, 25, 1000]) hours`)
	m := join(t, quick, db)
	defer leave(t, m)
	var left int
	if query(t, db, &left, `select count(*) from node where id <> $1`, m.ID); left != 1 || m.LiveCount() != 1 {
		t.Errorf("got %d other nodes and %d members, want 1 and 1", left, m.LiveCount())
	}
}

func TestOpenHome_SecondProcessGetsConflict(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := home(t, dir)
	if _, err := cluster.OpenHome(dir); !fault.Is(err, fault.Conflict) {
		t.Fatalf("opening it twice: got %v, want fault.Conflict", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if again := home(t, dir); again.ID != first.ID {
		t.Fatalf("got id %s after reopening, want %s", again.ID, first.ID)
	}
}

func query(t *testing.T, db *pg.DB, into any, sql string, args ...any) {
	t.Helper()
	if err := db.InRole(t.Context(), pg.Clock, func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), sql, args...).Scan(into) }); err != nil {
		t.Fatal(err)
	}
}
