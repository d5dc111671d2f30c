package pg_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/fault"
	"crier/platform/migrations"
	"crier/platform/pg"
	"crier/tests/dbtest"
)

const walled = `
create table note (
  org_id uuid not null,
  id     int not null,
  due    int not null default 0,
  body   text not null default '',
  constraint note_key primary key (org_id, id)
);
alter table note enable row level security;
alter table note force row level security;
create policy tenant on note to crier_tenant
  using (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))
  with check (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid));
grant select, insert, update, delete on note to crier_tenant;
create policy clock on note for select to crier_clock using (due > 0);
grant select (org_id, id, due) on note to crier_clock;
`

// forEachPooler runs test on a new database, once directly and once as if behind a transaction
// pooler.
func forEachPooler(t *testing.T, test func(t *testing.T, d *pg.DB)) {
	t.Parallel()
	for name, pooler := range map[string]string{"directly": "", "behind a transaction pooler": pg.PoolerTransaction} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, blank(t), pooler))
		})
	}
}

// blank returns the address of a new database with the roles and the table note.
func blank(t *testing.T) string {
	t.Helper()
	url := dbtest.Blank(t)
	migrate(t, url)
	return url
}

// migrate creates the roles and the table note.
func migrate(t *testing.T, url string) {
	t.Helper()
	files := fstest.MapFS{"0001_note.sql": {Data: []byte(walled)}}
	if err := migrations.Migrate(t.Context(), migrations.Config{URL: url, Files: files}, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, url, pooler string) *pg.DB {
	t.Helper()
	d, err := pg.Open(t.Context(), pg.Config{URL: url, DirectURL: url, Pooler: pooler, MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func count(ctx context.Context, d *pg.DB, org uuid.UUID) (n int, err error) {
	err = d.Read(ctx, org, func(b *pgx.Batch) {
		b.Queue("select count(*) from note").QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	})
	return n, err
}

func add(ctx context.Context, d *pg.DB, as, org uuid.UUID, id, due int) error {
	return d.InOrg(ctx, as, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "insert into note (org_id, id, due) values ($1, $2, $3)", org, id, due)
		return err
	})
}

func code(err error) string {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		return pe.Code
	}
	return ""
}

func TestWall_ShowsOwnRowsOnly(t *testing.T) {
	forEachPooler(t, func(t *testing.T, d *pg.DB) {
		ctx, a, b := t.Context(), uuid.New(), uuid.New()
		if err := add(ctx, d, a, a, 1, 0); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			org  uuid.UUID
			want int
		}{"own rows": {org: a, want: 1}, "another's rows": {org: b, want: 0}} {
			if n, err := count(ctx, d, c.org); err != nil || n != c.want {
				t.Errorf("%s: got %d rows, %v; want %d", name, n, err, c.want)
			}
		}
		if err := add(ctx, d, a, b, 2, 0); code(err) != "42501" {
			t.Errorf("insert for another organization: got %v, want 42501", err)
		}
		n := -1
		err := d.InRole(ctx, pg.Tenant, func(tx pgx.Tx) error { return tx.QueryRow(ctx, "select count(*) from note").Scan(&n) })
		if err != nil || n != 0 {
			t.Errorf("no organization: got %d rows, %v; want none", n, err)
		}
	})
}

func TestWall_RolesReadGrantedColumnsOnly(t *testing.T) {
	forEachPooler(t, func(t *testing.T, d *pg.DB) {
		ctx, org := t.Context(), uuid.New()
		if err := errors.Join(add(ctx, d, org, org, 1, 0), add(ctx, d, org, org, 2, 5)); err != nil {
			t.Fatal(err)
		}
		n := -1
		err := d.InRole(ctx, pg.Clock, func(tx pgx.Tx) error { return tx.QueryRow(ctx, "select count(id) from note").Scan(&n) })
		if err != nil || n != 1 {
			t.Errorf("the clock role reads %d due rows, %v; want 1", n, err)
		}
		for role, sql := range map[pg.Role]string{
			pg.Clock: "select body from note", pg.Gate: "select id from note", pg.Keys: "select id from note",
			pg.Sessions: "select id from note", pg.Sender: "select id from note",
		} {
			err := d.InRole(ctx, role, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, sql); return err })
			if code(err) != "42501" {
				t.Errorf("%s executes %q: got %v, want 42501", role, sql, err)
			}
		}
		if err := d.Ping(ctx); err != nil {
			t.Errorf("Ping: got %v, want no error", err)
		}
	})
}

// Borrowers of all kinds, some cancelled and some failing, never see the settings of the previous
// one.
func TestPool_NextBorrowerSeesNothingOfPrevious(t *testing.T) {
	forEachPooler(t, func(t *testing.T, d *pg.DB) {
		orgs := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
		for i, org := range orgs {
			for id := range i + 1 {
				if err := add(t.Context(), d, org, org, id, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 60 {
					borrow(t, d, orgs)
				}
			})
		}
		wg.Wait()
	})
}

func borrow(t *testing.T, d *pg.DB, orgs []uuid.UUID) {
	i := rand.IntN(len(orgs))
	switch rand.IntN(4) {
	case 0:
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Microsecond)
		defer cancel()
		if n, err := count(ctx, d, orgs[i]); err == nil && n != i+1 {
			t.Errorf("a borrower with a short deadline reads %d rows, want %d", n, i+1)
		}
	case 1:
		if err := add(t.Context(), d, orgs[i], orgs[i], 0, 0); !pg.IsUnique(err, "note_key") {
			t.Errorf("a failing borrower: got %v, want a violation of note_key", err)
		}
	case 2:
		var n int
		err := d.InRole(t.Context(), pg.Tenant, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), "select count(*) from note").Scan(&n)
		})
		if err != nil || n != 0 {
			t.Errorf("without an organization: got %d rows, %v; want none", n, err)
		}
	default:
		if n, err := count(t.Context(), d, orgs[i]); err != nil || n != i+1 {
			t.Errorf("got %d rows, %v; want %d", n, err, i+1)
		}
	}
}

func TestRead_RetriesAfterColumnTypeChanged(t *testing.T) {
	t.Parallel()
	url := blank(t)
	d, org := open(t, url, ""), uuid.New()
	if err := add(t.Context(), d, org, org, 7, 0); err != nil {
		t.Fatal(err)
	}
	ids := func() (n int64) {
		err := d.Read(t.Context(), org, func(b *pgx.Batch) {
			b.Queue("select id from note").QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	ids()
	owner, err := d.Direct(t.Context(), pg.Login)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	if _, err := owner.Exec(t.Context(), "alter table note alter column id type bigint"); err != nil {
		t.Fatal(err)
	}
	if got := ids(); got != 7 {
		t.Fatalf("got id %d, want 7", got)
	}
}

func TestInOrg_RetriesAfterRollback(t *testing.T) {
	t.Parallel()
	d := open(t, blank(t), "")
	for name, c := range map[string]struct {
		state string
		want  int
	}{
		"after a deadlock":              {state: "40P01", want: 3},
		"after a serialization failure": {state: "40001", want: 3},
		"after a lock timeout":          {state: "55P03", want: 3},
		"never after another error":     {state: "23514", want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs, org := 0, uuid.New()
			err := d.InOrg(t.Context(), org, func(tx pgx.Tx) error {
				runs++
				if _, err := tx.Exec(t.Context(), "insert into note (org_id, id) values ($1, 1)", org); err != nil {
					return err
				}
				_, err := tx.Exec(t.Context(), "do $$ begin raise 'no' using errcode = '"+c.state+"'; end $$")
				return err
			})
			if code(err) != c.state || runs != c.want {
				t.Errorf("%d runs, want %d: %v", runs, c.want, err)
			}
			if n, err := count(t.Context(), d, org); err != nil || n != 0 {
				t.Errorf("got %d rows after the rollback, %v; want none", n, err)
			}
		})
	}
}

func TestRead_ReturnsErrorOfAnyQuery(t *testing.T) {
	forEachPooler(t, func(t *testing.T, d *pg.DB) {
		err := d.Read(t.Context(), uuid.New(), func(b *pgx.Batch) {
			b.Queue("select 1")
			b.Queue("select 1 / 0")
			b.Queue("select 2")
		})
		if code(err) != "22012" {
			t.Fatalf("got %v, want 22012", err)
		}
	})
}

func TestDirect_EntersRole(t *testing.T) {
	t.Parallel()
	d := open(t, blank(t), pg.PoolerTransaction)
	for role, want := range map[pg.Role]string{pg.Clock: "crier_clock", pg.Login: "crier"} {
		c, err := d.Direct(t.Context(), role)
		if err != nil {
			t.Fatal(err)
		}
		var got, session string
		err = c.QueryRow(t.Context(), "select current_user, session_user").Scan(&got, &session)
		if role == pg.Login {
			want = session
		}
		if err != nil || got != want {
			t.Errorf("role %q: the current user is %q, %v; want %q", role, got, err, want)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestInRole_SetsTimeoutsOfRole(t *testing.T) {
	forEachPooler(t, func(t *testing.T, d *pg.DB) {
		for role, want := range map[pg.Role]string{pg.Tenant: "2s/5s", pg.Clock: "250ms/5s"} {
			var got string
			err := d.InRole(t.Context(), role, func(tx pgx.Tx) error {
				const sql = "select current_setting('lock_timeout') || '/' || current_setting('idle_in_transaction_session_timeout')"
				return tx.QueryRow(t.Context(), sql).Scan(&got)
			})
			if err != nil || got != want {
				t.Errorf("%s: got %s, %v; want %s", role, got, err, want)
			}
		}
	})
}

func TestOpen_RefusesInvalidConfig(t *testing.T) {
	t.Parallel()
	const url = "postgres://someone@127.0.0.1:1/x"
	for name, cfg := range map[string]pg.Config{
		"no address":                        {},
		"an invalid address":                {URL: "postgres://%zz"},
		"a prefix that needs quoting":       {URL: url, RolePrefix: `x"; drop`},
		"an unknown pooler":                 {URL: url, Pooler: "session"},
		"a pooler without a direct address": {URL: url, Pooler: pg.PoolerTransaction},
		"fewer connections than roles":      {URL: url, MaxConns: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := pg.Open(t.Context(), cfg); !fault.Is(err, fault.Invalid) {
				t.Errorf("got %v, want fault.Invalid", err)
			}
		})
	}
}

func TestPing_SeparatesMissingRoleFromMissingServer(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]pg.Config{
		"run the migrations first": {URL: dbtest.Blank(t), RolePrefix: "missing"},
		"cannot be reached":        {URL: "postgres://someone@127.0.0.1:1/x?connect_timeout=2"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := pg.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			var f *fault.Error
			if err := d.Ping(t.Context()); !errors.As(err, &f) || f.Kind != fault.Unavailable || !strings.Contains(f.Message, name) {
				t.Errorf("got %v, want unavailable with %q", err, name)
			}
		})
	}
}
