package pg_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tests/dbtest"
)

const noteInsert = "insert into note (org_id, id, due) values ($1, $2, $3)"

// entered returns the role, the organization and the lock timeout of the current transaction.
const entered = "select current_user || '/' || coalesce(current_setting('app.org_id', true), '') || '/' || current_setting('lock_timeout')"

func TestWriteOrg_IsOneTransactionInItsRole(t *testing.T) {
	forEachPooler(t, func(t *testing.T, d *pg.DB) {
		ctx, org := t.Context(), uuid.New()
		var first, last string
		into := func(s *string) func(pgx.Row) error { return func(row pgx.Row) error { return row.Scan(s) } }
		err := d.WriteOrg(ctx, org, func(b *pgx.Batch) {
			b.Queue(entered).QueryRow(into(&first))
			b.Queue(noteInsert, org, 1, 5)
			b.Queue(noteInsert, org, 2, 5)
			b.Queue(entered).QueryRow(into(&last))
		})
		if want := "crier_tenant/" + org.String() + "/2s"; err != nil || first != want || last != want {
			t.Fatalf("%q at first, %q at last, want %q: %v", first, last, want, err)
		}
		err = d.WriteOrg(ctx, org, func(b *pgx.Batch) {
			b.Queue(noteInsert, org, 3, 0)
			b.Queue(noteInsert, org, 1, 0)
			b.Queue(noteInsert, org, 4, 0)
		})
		if n, e := count(ctx, d, org); !pg.IsUnique(err, "note_key") || n != 2 || e != nil {
			t.Errorf("a failing statement: got %v and %d rows, %v; want a violation of note_key and 2 rows", err, n, e)
		}
		n := -1
		err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
			b.Queue("select count(id) from note").QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
		})
		if err != nil || n != 2 {
			t.Errorf("the clock role reads %d rows, %v; want 2", n, err)
		}
		if err := d.WriteRole(ctx, "unknown", func(*pgx.Batch) {}); !fault.Is(err, fault.Internal) {
			t.Errorf("a role without a pool: got %v, want fault.Internal", err)
		}
	})
}

func TestWriteOrg_CannotReachAnotherOrganization(t *testing.T) {
	forEachPooler(t, func(t *testing.T, d *pg.DB) {
		ctx, mine, theirs := t.Context(), uuid.New(), uuid.New()
		if err := d.WriteOrg(ctx, mine, func(b *pgx.Batch) { b.Queue(noteInsert, theirs, 1, 0) }); code(err) != "42501" {
			t.Errorf("an insert for another organization: got %v, want 42501", err)
		}
		for _, sql := range []string{"insert into note (org_id, id) values (gen_random_uuid(), 1)", "select body from note"} {
			if err := d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) { b.Queue(sql) }); code(err) != "42501" {
				t.Errorf("the clock role executes %q: got %v, want 42501", sql, err)
			}
		}
	})
}

// The pool has one connection, so the next borrower gets the connection that the batch used.
func TestWriteOrg_LeavesNothingOnConnection(t *testing.T) {
	t.Parallel()
	url := blank(t)
	for name, sql := range map[string]string{
		"that worked":                "select 1",
		"that failed":                "select 1 / 0",
		"that cannot be prepared":    "select no_such_column",
		"that failed at the commit":  "insert into later values (1, 1), (1, 2)",
		"that failed late":           "select pg_sleep(0.01), 1 / 0",
		"that wrote a row":           "insert into later values (2, 1)",
		"that wrote a forbidden row": "insert into note (org_id, id) values (gen_random_uuid(), 1)",
	} {
		t.Run(name, func(t *testing.T) {
			d, err := pg.Open(t.Context(), pg.Config{URL: url, DirectURL: url, Pooler: pg.PoolerTransaction, MaxConns: 4})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			createDeferred(t, d)
			bare := "select current_user || '/' || coalesce(nullif(current_setting('app.org_id', true), ''), 'none') || '/' || current_setting('lock_timeout')"
			var before, after string
			pid := func(s *string) (n int) {
				if err := d.Pool(pg.Tenant).QueryRow(t.Context(), "select pg_backend_pid(), ("+bare+")").Scan(&n, s); err != nil {
					t.Fatal(err)
				}
				return n
			}
			was := pid(&before)
			// Only the connection is checked.
			_ = d.WriteOrg(t.Context(), uuid.New(), func(b *pgx.Batch) { b.Queue(sql) })
			if is := pid(&after); is != was || after != before {
				t.Errorf("got %q on connection %d, want %q on connection %d", after, is, before, was)
			}
		})
	}
}

// createDeferred creates a table whose unique key is checked at commit.
func createDeferred(t *testing.T, d *pg.DB) {
	t.Helper()
	c, err := d.Direct(t.Context(), pg.Login)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	const sql = "create table if not exists later (id int unique deferrable initially deferred, n int); grant select, insert, delete on later to crier_tenant"
	if _, err := c.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestWriteOrg_ReturnsErrorOfCommit(t *testing.T) {
	forEachPooler(t, func(t *testing.T, d *pg.DB) {
		createDeferred(t, d)
		err := d.WriteOrg(t.Context(), uuid.New(), func(b *pgx.Batch) {
			b.Queue("insert into later values (1, 1)")
			b.Queue("insert into later values (1, 2)")
		})
		n := -1
		e := d.Read(t.Context(), uuid.New(), func(b *pgx.Batch) {
			b.Queue("select count(*) from later").QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
		})
		if code(err) != "23505" || n != 0 || e != nil {
			t.Fatalf("got %v and %d rows, %v; want 23505 and none", err, n, e)
		}
	})
}

func TestWriteOrg_RetriesAfterRollback(t *testing.T) {
	t.Parallel()
	d := open(t, blank(t), "")
	for state, want := range map[string]int{"40P01": 3, "40001": 3, "55P03": 3, "23514": 1} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			runs, org := 0, uuid.New()
			err := d.WriteOrg(t.Context(), org, func(b *pgx.Batch) {
				runs++
				b.Queue(noteInsert, org, 1, 0)
				b.Queue("do $$ begin raise 'no' using errcode = '" + state + "'; end $$")
			})
			if n, e := count(t.Context(), d, org); code(err) != state || runs != want || n != 0 || e != nil {
				t.Errorf("got %d runs, %v and %d rows, %v; want %d runs, %s and none", runs, err, n, e, want, state)
			}
		})
	}
}

func TestWriteOrg_SendsNoBeginAndNoCommit(t *testing.T) {
	t.Parallel()
	address, org := blank(t), uuid.New()
	super, d := dbtest.TrackStatements(t, address), open(t, address, "")
	const marked = "-- batches.Counted\ninsert into note (org_id, id, due) values ($1, $2, 1)"
	for id := range 5 {
		if err := d.WriteOrg(t.Context(), org, func(b *pgx.Batch) { b.Queue(marked, org, id) }); err != nil {
			t.Fatal(err)
		}
	}
	var calls int
	var others []string
	err := super.QueryRow(t.Context(), `select
		coalesce(sum(calls) filter (where query like '%batches.Counted%'), 0), coalesce(array_agg(distinct query) filter (where query ilike 'begin%' or query ilike 'commit%'), '{}')
		from pg_stat_statements where dbid = (select oid from pg_database where datname = $1) and userid = (select oid from pg_roles where rolname = 'crier_tenant')`,
		d.Pool(pg.Tenant).Config().ConnConfig.Database).Scan(&calls, &others)
	if err != nil || calls != 5 || len(others) > 0 {
		t.Fatalf("got %d calls, also of %q, %v; want 5 calls and no others", calls, others, err)
	}
}

func TestPlan_ReachesEveryConnectionOfRole(t *testing.T) {
	t.Parallel()
	for pooler, want := range map[string]int{"": 1, pg.PoolerTransaction: 0} {
		d := open(t, blank(t), pooler)
		if err := d.Plan(t.Context(), pg.Clock, "-- plans.Counted\nselect id from note where id = $1"); err != nil {
			t.Fatal(err)
		}
		all := d.Pool(pg.Clock).AcquireAllIdle(t.Context())
		if want == 1 && len(all) != 2 {
			t.Errorf("%d connections are open, want the 2 of the clock role", len(all))
		}
		for _, c := range all {
			var n int
			err := c.QueryRow(t.Context(), "select count(*) from pg_prepared_statements where statement like '-- plans.Counted%' and generic_plans = 1").Scan(&n)
			c.Release()
			if err != nil || n != want {
				t.Errorf("pooler %q: %d plans on a connection, want %d: %v", pooler, n, want, err)
			}
		}
		if err := d.Plan(t.Context(), pg.Clock, "select body from note where id = $1"); (code(err) == "42501") != (want == 1) {
			t.Errorf("pooler %q: a statement that the role may not execute: got %v, want 42501: %t", pooler, err, want == 1)
		}
		if err := d.Plan(t.Context(), "unknown"); !fault.Is(err, fault.Internal) {
			t.Errorf("a role without a pool: got %v, want fault.Internal", err)
		}
	}
}

func TestOpen_PlannedConnectionsLiveLongAndExpireApart(t *testing.T) {
	t.Parallel()
	d := open(t, "postgres://someone@127.0.0.1:1/x", "") // nothing connects
	for role, planned := range map[pg.Role]bool{
		pg.Clock: true, pg.Sender: true, pg.Tenant: false, pg.Gate: false, pg.Retention: false,
	} {
		c := d.Pool(role).Config()
		long := c.MaxConnLifetime >= 24*time.Hour
		apart := c.MaxConnLifetimeJitter >= time.Hour && c.MaxConnIdleTime >= c.MaxConnLifetime+c.MaxConnLifetimeJitter
		if long != planned || apart != planned {
			t.Errorf("%s: connections live %v and up to %v more, idle ones %v; want long lives: %t",
				role, c.MaxConnLifetime, c.MaxConnLifetimeJitter, c.MaxConnIdleTime, planned)
		}
	}
}

func TestWriteOrg_ReturnsErrorOfCallback(t *testing.T) {
	forEachPooler(t, func(t *testing.T, d *pg.DB) {
		org := uuid.New()
		err := d.WriteOrg(t.Context(), org, func(b *pgx.Batch) {
			b.Queue("delete from note where id = 9 returning id").QueryRow(func(row pgx.Row) error { var n int; return row.Scan(&n) })
		})
		if !pg.IsNoRows(err) {
			t.Errorf("no row: got %v, want pgx.ErrNoRows", err)
		}
		mine := errors.New("mine")
		err = d.WriteOrg(t.Context(), org, func(b *pgx.Batch) {
			b.Queue(noteInsert, org, 1, 0).Exec(func(pgconn.CommandTag) error { return mine })
		})
		if n, e := count(t.Context(), d, org); !errors.Is(err, mine) || n != 1 || e != nil {
			t.Errorf("the error of a callback: got %v and %d rows, %v; want it and the row", err, n, e)
		}
	})
}
