package cluster_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

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

func join(t *testing.T, cfg cluster.Config, db *pg.DB, h *cluster.Home) *cluster.Member {
	t.Helper()
	cfg.Roles = []string{cluster.RoleWorker}
	m, err := cluster.Join(t.Context(), cfg, "", cluster.Deps{DB: db, Home: h, Log: slog.New(slog.DiscardHandler)})
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
	m := join(t, quick, db, home(t, t.TempDir()))
	defer leave(t, m)
	if n := len(m.Lease().Shards); n != tenancy.Shards {
		t.Fatalf("holds %d shards", n)
	}
}

func TestASuccessorOnTheSameHomeTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	dir := t.TempDir()
	h := home(t, dir)
	slow := cluster.Config{TTL: time.Hour, Beat: time.Hour}
	dead := join(t, slow, db, h)
	if err := h.Close(); err != nil { // as the kernel does for a killed process
		t.Fatal(err)
	}
	next := join(t, slow, db, home(t, dir))
	defer leave(t, next)
	if n := len(next.Lease().Shards); n != tenancy.Shards {
		t.Fatalf("holds %d shards", n)
	}
	if next.ID == dead.ID {
		t.Fatal("two starts have the same id")
	}
	leave(t, dead)
}

func TestAnotherHomeTakesOnlyWhatIsGiven(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	first := join(t, cluster.Config{TTL: time.Hour, Beat: time.Hour}, db, home(t, t.TempDir()))
	second := join(t, quick, db, home(t, t.TempDir()))
	defer leave(t, second)
	eventually(t, "both hold a share, and no shard is held twice", func() bool { return apart(first, second) && len(second.Lease().Shards) > 0 })
	leave(t, first)
	eventually(t, "the second holds every shard", func() bool { return len(second.Lease().Shards) == tenancy.Shards })
}

func TestALapsedLeaseGoesOn(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	m := join(t, quick, db, home(t, t.TempDir()))
	defer leave(t, m)
	exec(t, db, `update node set expires_at = now() - interval '1 minute' where id = $1`, m.ID)
	eventually(t, "the lease is renewed", func() (alive bool) {
		query(t, db, &alive, `select expires_at > now() from node where id = $1`, m.ID)
		return alive && apart(m)
	})
}

func TestAProcessThatWasDeclaredGoneIsFenced(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	m := join(t, quick, db, home(t, t.TempDir()))
	defer leave(t, m)
	exec(t, db, `delete from node where id = $1`, m.ID)
	<-m.Fenced()
	if n := len(m.Lease().Shards); n != 0 {
		t.Fatalf("still holds %d shards", n)
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

func TestOnlyAProcessThatIsProvedGoneIsBuried(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	const refused, reused, stopped, locked = "0190f3a0-0000-7000-8000-000000000001", "0190f3a0-0000-7000-8000-000000000002", "0190f3a0-0000-7000-8000-000000000003", "0190f3a0-0000-7000-8000-000000000004"
	for id, address := range map[string]string{refused: "closed", locked: "closed", stopped: "accepts", reused: "mine"} {
		exec(t, db, `insert into node (id, home, address, roles, expires_at) values ($1, gen_random_uuid(), $2, '{worker}', now() - interval '1 minute')`, id, address)
	}
	holder, err := db.Direct(t.Context(), pg.Clock)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close(context.Background()) }()
	if _, err := holder.Exec(t.Context(), `select pg_advisory_lock(hashtextextended('crier node ' || $1::text, 0))`, locked); err != nil {
		t.Fatal(err)
	}
	m, err := cluster.Join(t.Context(), quick, "mine", cluster.Deps{DB: db, Home: home(t, t.TempDir()), Log: slog.New(slog.DiscardHandler), Refuses: func(_ context.Context, address string) bool {
		return address == "closed"
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer leave(t, m)
	var left []string
	eventually(t, "what is gone is buried", func() bool {
		err := db.InRole(t.Context(), pg.Clock, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `select array_agg(id::text order by id) from node where id <> $1`, m.ID).Scan(&left)
		})
		return err == nil && len(left) <= 2
	})
	if len(left) != 2 || left[0] != stopped || left[1] != locked {
		t.Errorf("left are %v", left)
	}
}
