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
	goleak.VerifyTestMain(m)
}

var quick = cluster.Config{TTL: 3 * time.Second, Beat: 50 * time.Millisecond, Roles: []string{cluster.RoleWorker}}

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
	m, err := cluster.Join(t.Context(), cfg, address, deps)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func leave(t *testing.T, m *cluster.Member) {
	t.Helper()
	for tries := 1; ; tries++ {
		err := m.Leave(context.Background()) // it has a limit of its own: a short heartbeat's, which a busy machine may exceed
		if err == nil {
			return
		}
		if tries == 3 || !pg.IsAway(err) {
			t.Error(err)
			return
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain: " + what)
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

func TestAloneItHoldsEveryShard(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	m := join(t, quick, db)
	defer leave(t, m)
	if n := len(m.Lease().Shards); n != tenancy.Shards {
		t.Fatalf("holds %d shards", n)
	}
}

// dead writes down a process that holds every shard and never beats again.
func dead(t *testing.T, db *pg.DB, home uuid.UUID) *cluster.Member {
	t.Helper()
	m := &cluster.Member{ID: uuid.New()}
	exec(t, db, `insert into node (id, home, address, roles, expires_at) values ($1, $2, '', '{worker}', now() + interval '1 hour')`, m.ID, home)
	exec(t, db, `update shard set owner = $1`, m.ID)
	return m
}

func TestASuccessorOnTheSameHomeTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	h := home(t, t.TempDir())
	dead(t, db, h.ID)
	next := joinWith(t, quick, "", cluster.Deps{DB: db, Home: h, Log: slog.New(slog.DiscardHandler)})
	defer leave(t, next)
	if n := len(next.Lease().Shards); n != tenancy.Shards || next.Seen() != 1 {
		t.Fatalf("it holds %d shards and sees %d processes", n, next.Seen())
	}
}

func TestADeadProcessKeepsItsShardsUntilItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	lost := dead(t, db, uuid.New())
	next := join(t, quick, db)
	defer leave(t, next)
	first := next.LastBeat()
	eventually(t, "some beats went by", func() bool { return next.LastBeat().Sub(first) > 10*quick.Beat })
	if n := len(next.Lease().Shards); n != 0 || owned(t, db, lost) != tenancy.Shards {
		t.Fatalf("%d shards are taken over before the lease is over", n)
	}
	exec(t, db, `update node set expires_at = now() where id = $1`, lost.ID)
	eventually(t, "the other holds every shard", func() bool { return apart(next) && owned(t, db, next) == tenancy.Shards })
}

func TestAnotherProcessTakesOnlyWhatIsGiven(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	first := join(t, cluster.Config{TTL: time.Hour, Beat: time.Hour}, db)
	second := join(t, quick, db)
	defer leave(t, second)
	eventually(t, "both hold a share, and no shard is held twice", func() bool {
		return apart(first, second) && len(second.Lease().Shards) > 0
	})
	leave(t, first)
	eventually(t, "the second holds every shard", func() bool { return len(second.Lease().Shards) == tenancy.Shards })
}

func TestAProcessThatWasForgottenIsAMemberAgain(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	m := join(t, quick, db)
	defer leave(t, m)
	exec(t, db, `delete from node where id = $1`, m.ID)
	eventually(t, "it is known again and has every shard", func() bool {
		var known bool
		query(t, db, &known, `select exists (select from node where id = $1)`, m.ID)
		return known && apart(m) && owned(t, db, m) == tenancy.Shards
	})
}

func TestJoin_ForgetsWhatEndedADayAgo(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	exec(t, db, `insert into node (id, home, address, roles, expires_at)
		select gen_random_uuid(), gen_random_uuid(), '', '{worker}', now() - hours * interval '1 hour' from unnest(array[23, 25, 1000]) hours`)
	m := join(t, quick, db)
	defer leave(t, m)
	var left int
	if query(t, db, &left, `select count(*) from node where id <> $1`, m.ID); left != 1 || m.Seen() != 1 {
		t.Errorf("%d processes of the past are left, want 1; %d are seen, want 1", left, m.Seen())
	}
}

func TestAHomeIsHeldByOneProcessOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := home(t, dir)
	if _, err := cluster.OpenHome(dir); !fault.Is(err, fault.Conflict) {
		t.Fatalf("opened twice: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if again := home(t, dir); again.ID != first.ID {
		t.Fatal("the home changed its id")
	}
}

func query(t *testing.T, db *pg.DB, into any, sql string, args ...any) {
	t.Helper()
	if err := db.InRole(t.Context(), pg.Clock, func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), sql, args...).Scan(into) }); err != nil {
		t.Fatal(err)
	}
}
