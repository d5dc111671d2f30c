package dbtest_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tests/dbtest"
)

func TestDatabases(t *testing.T) {
	t.Parallel()
	t.Run("every role can connect", func(t *testing.T) {
		t.Parallel()
		if err := dbtest.Open(t).Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("databases are separate", func(t *testing.T) {
		t.Parallel()
		a, b := connect(t, dbtest.URL(t)), connect(t, dbtest.URL(t))
		exec(t, a, "create table mine ()")
		var seen bool
		if err := b.QueryRow(t.Context(), "select to_regclass('mine') is not null").Scan(&seen); err != nil || seen {
			t.Fatalf("got table in the other database %v, %v, want false", seen, err)
		}
	})
	t.Run("a blank database has no tables", func(t *testing.T) {
		t.Parallel()
		var n int
		c := connect(t, dbtest.Blank(t))
		if err := c.QueryRow(t.Context(), "select count(*) from pg_tables where schemaname = 'public'").Scan(&n); err != nil || n != 0 {
			t.Fatalf("got %d tables, %v, want 0", n, err)
		}
	})
	t.Run("the owner is not a superuser", func(t *testing.T) {
		t.Parallel()
		var super, bypass bool
		c := connect(t, dbtest.URL(t))
		if err := c.QueryRow(t.Context(), "select rolsuper, rolbypassrls from pg_roles where rolname = current_user").Scan(&super, &bypass); err != nil || super || bypass {
			t.Fatalf("got superuser %v, bypassrls %v, %v, want neither", super, bypass, err)
		}
	})
}

func TestOpen_DropsDatabaseAtEnd(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("in use", func(t *testing.T) {
		d := dbtest.Open(t)
		if err := d.InRole(t.Context(), pg.Gate, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), "select current_database()").Scan(&name)
		}); err != nil {
			t.Fatal(err)
		}
	})
	var there bool
	c := connect(t, dbtest.Blank(t))
	if err := c.QueryRow(t.Context(), "select exists (select from pg_database where datname = $1)", name).Scan(&there); err != nil || there || name == "" {
		t.Fatalf("got database %q existing %v, %v, want it dropped", name, there, err)
	}
}

func TestTrackStatements_CountsStatementsOfAllRoles(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	super, d := dbtest.TrackStatements(t, address), dbtest.OpenURL(t, address)
	if err := d.Read(t.Context(), uuid.New(), func(b *pgx.Batch) { b.Queue("select 1 as dbtest_marked") }); err != nil {
		t.Fatal(err)
	}
	var name string
	if err := d.Pool(pg.Gate).QueryRow(t.Context(), "select current_database() as dbtest_marked").Scan(&name); err != nil {
		t.Fatal(err)
	}
	var calls int
	err := super.QueryRow(t.Context(), `select coalesce(sum(calls), 0) from pg_stat_statements s join pg_database d on d.oid = s.dbid
		where d.datname = $1 and query like '%dbtest_marked%'`, name).Scan(&calls)
	if err != nil || calls != 2 {
		t.Fatalf("got %d calls, %v, want 2", calls, err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}

func exec(t *testing.T, c *pgx.Conn, sql string) {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
