package migrations_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"crier/platform/fault"
	"crier/platform/migrations"
	"crier/tests/dbtest"
)

const (
	table = "create table a (n int); insert into a values (1), (2)"
	index = "create index concurrently if not exists a_n on a (n)"
)

// shortTimeout returns a Config with a short LockTimeout.
func shortTimeout(url string, members map[string]string) migrations.Config {
	return migrations.Config{URL: url, Files: files(members), LockTimeout: 200 * time.Millisecond}
}

func migrate(t *testing.T, cfg migrations.Config) {
	t.Helper()
	if err := migrations.Migrate(t.Context(), cfg, quiet); err != nil {
		t.Fatal(err)
	}
}

// session returns a connection of the owner with the application name "lock holder".
func session(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	cc, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cc.RuntimeParams["application_name"] = "lock holder"
	c, err := pgx.ConnectConfig(t.Context(), cc)
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

// logLines are the lines of the log of a migration.
type logLines chan string

func newLog() (logLines, *slog.Logger) {
	l := make(logLines, 1000)
	return l, slog.New(slog.NewTextHandler(l, nil))
}

func (l logLines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// until waits for a line that contains all the words.
func (l logLines) until(t *testing.T, words ...string) {
	t.Helper()
	for {
		select {
		case line := <-l:
			missing := false
			for _, w := range words {
				missing = missing || !strings.Contains(line, w)
			}
			if !missing {
				return
			}
		case <-time.After(time.Minute):
			t.Fatalf("got no line in the log that contains %q", words)
		}
	}
}

func TestBaseline_DifferentOneIsRefused(t *testing.T) {
	t.Parallel()
	baseline := "create table a (n int); -- a comment\n"
	same := shortTimeout("", map[string]string{"0001_a.sql": "-- Everything.\ncreate table a\n  (n int);"})
	other := shortTimeout("", map[string]string{"0001_a.sql": "create table a (n bigint)"})
	for name, c := range map[string]struct {
		cfg    migrations.Config
		spoil  string
		refuse bool
	}{
		"same statements in another layout are accepted": {cfg: same, spoil: "select"},
		"other statements are refused":                   {cfg: other, spoil: "select", refuse: true},
		"database without a baseline is refused": {
			cfg: same, spoil: "alter table goose_db_version drop column baseline", refuse: true,
		},
		"database without migrations is accepted": {cfg: other, spoil: `drop table a;
			alter table goose_db_version drop column baseline; delete from goose_db_version where version_id > 0`},
		"copy of the rows without comments is accepted": {cfg: same, spoil: `create table copy as table goose_db_version;
			drop table goose_db_version; alter table copy rename to goose_db_version`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := dbtest.Blank(t)
			migrate(t, shortTimeout(url, map[string]string{"0001_a.sql": baseline}))
			exec(t, session(t, url), c.spoil)
			c.cfg.URL = url
			_, _, seen := migrations.Version(t.Context(), c.cfg)
			err := migrations.Migrate(t.Context(), c.cfg, quiet)
			for _, err := range []error{seen, err} {
				if c.refuse != fault.Is(err, fault.Conflict) || !c.refuse && err != nil {
					t.Errorf("got %v, want fault.Conflict: %t", err, c.refuse)
				}
			}
		})
	}
}

func TestMigrate_RetriesUntilLockIsFree(t *testing.T) {
	t.Parallel()
	cfg := shortTimeout(dbtest.Blank(t), map[string]string{"0001_a.sql": table})
	migrate(t, cfg)
	holder := session(t, cfg.URL)
	exec(t, holder, "begin; lock table a in access share mode")
	cfg.Files = files(map[string]string{"0001_a.sql": table, "0002_b.sql": "alter table a add column b int"})
	lines, log := newLog()
	ended := make(chan error, 1)
	go func() { ended <- migrations.Migrate(t.Context(), cfg, log) }()
	lines.until(t, "is waiting for other transactions", "0002_b.sql", "lock holder")
	for range 2 {
		lines.until(t, "did not get its lock and will be retried", "0002_b.sql", "lock holder")
	}
	exec(t, session(t, cfg.URL), "select count(*) from a") // between two attempts
	exec(t, holder, "commit")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	exec(t, holder, "select b from a")
}

func TestMigrate_IgnoresTimeoutsOfOwner(t *testing.T) {
	t.Parallel()
	cfg := shortTimeout(dbtest.Blank(t), map[string]string{"0001_a.sql": `select pg_sleep(1.5);
		create table limits as select name, setting from pg_settings
		where name in ('statement_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout')`})
	owner := session(t, cfg.URL)
	for _, limit := range []string{"statement_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout"} {
		// In this database only: the tests share the role.
		exec(t, owner, `do $$ begin
			execute format('alter role %I in database %I set `+limit+` = 1000', current_user, current_database());
		end $$`)
	}
	migrate(t, cfg)
	if got := text(t, cfg.URL, "select string_agg(setting, ' ') from limits"); got != "0 0 0" {
		t.Errorf("got limits %s, want 0 0 0", got)
	}
}

func TestMigrate_RetriesTablesOfBackgroundJobs(t *testing.T) {
	t.Parallel()
	cfg := migrations.Config{URL: dbtest.URL(t), LockTimeout: 200 * time.Millisecond}
	holder := session(t, cfg.URL)
	exec(t, holder, "begin; lock table jobs.river_migration")
	lines, log := newLog()
	ended := make(chan error, 1)
	go func() { ended <- migrations.Migrate(t.Context(), cfg, log) }()
	lines.until(t, "did not get its lock and will be retried", "of the background jobs", "lock holder")
	exec(t, holder, "rollback")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestMigrate_RetriesReadingVersions(t *testing.T) {
	t.Parallel()
	cfg := shortTimeout(dbtest.Blank(t), map[string]string{"0001_a.sql": table})
	migrate(t, cfg)
	holder := session(t, cfg.URL)
	exec(t, holder, "begin; lock table goose_db_version")
	if _, _, err := migrations.Version(t.Context(), cfg); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Version of a locked database: got %v, want fault.Unavailable", err)
	}
	lines, log := newLog()
	ended := make(chan error, 1)
	go func() { ended <- migrations.Migrate(t.Context(), cfg, log) }()
	lines.until(t, "did not get its lock and will be retried", "of the roles and versions", "lock holder")
	exec(t, holder, "rollback")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestMigrate_SurvivesLossOfWatcher(t *testing.T) {
	t.Parallel()
	cfg := migrations.Config{URL: dbtest.Blank(t), LockTimeout: 200 * time.Millisecond}
	holder := session(t, cfg.URL)
	exec(t, holder, "begin; create schema jobs") // the baseline waits for this transaction
	lines, log := newLog()
	ended := make(chan error, 1)
	go func() { ended <- migrations.Migrate(t.Context(), cfg, log) }()
	lines.until(t, "is waiting for other transactions", "lock holder")
	exec(t, holder, `select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and starts_with(query, '-- migrations.Holders')`)
	lines.until(t, "cannot read what a migration is waiting for")
	exec(t, holder, "rollback")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestMigrate_GivesUpAndNamesLockHolder(t *testing.T) {
	t.Parallel()
	const lock = "begin; lock table a in access share mode"
	for name, c := range map[string]struct{ hold, next, sql, want string }{
		"lock": {hold: lock, next: "0002_b.sql", sql: "alter table a add column b int", want: "lock holder"},
		"old transaction": {
			hold: "begin; insert into a values (3)", next: "0002_i.concurrently.sql", sql: index, want: "lock holder",
		},
		"another migration": {
			hold: "select pg_advisory_lock(x'6372696572'::bigint)", next: "0002_b.sql", sql: "select",
			want: "Another process",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := shortTimeout(dbtest.Blank(t), map[string]string{"0001_a.sql": table})
			migrate(t, cfg)
			holder := session(t, cfg.URL)
			exec(t, holder, c.hold)
			cfg.Files = files(map[string]string{"0001_a.sql": table, c.next: c.sql})
			cfg.LockTimeout = 20 * time.Millisecond
			err := migrations.Migrate(t.Context(), cfg, quiet)
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want fault.Unavailable with %q", err, c.want)
			}
			if have, _, err := migrations.Version(t.Context(), cfg); err != nil || have != 1 {
				t.Fatalf("got version %d, %v, want 1", have, err)
			}
			if err := holder.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			cfg.LockTimeout = 0
			migrate(t, cfg)
		})
	}
}

func TestConcurrently_RebuildsIndexOfFailedBuild(t *testing.T) {
	t.Parallel()
	members := map[string]string{
		"0001_a.sql":              table + "; insert into a values (2)",
		"0002_n.concurrently.sql": "-- No number twice.\ncreate unique index concurrently if not exists a_n on a (n);\n",
	}
	cfg := shortTimeout(dbtest.Blank(t), members)
	valid := func(want string) {
		t.Helper()
		got := text(t, cfg.URL, `select coalesce(
			(select indisvalid::text from pg_index where indexrelid = to_regclass('a_n')), 'none')`)
		if got != want {
			t.Fatalf("index is valid: got %s, want %s", got, want)
		}
	}
	err := migrations.Migrate(t.Context(), cfg, quiet)
	if !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "0002_n") {
		t.Fatalf("got %v, want fault.Internal with the file", err)
	}
	valid("false")
	owner := session(t, cfg.URL)
	exec(t, owner, "delete from a where n = 2")
	migrate(t, cfg)
	valid("true")
	// The index was built, and the process died before the version was recorded.
	exec(t, owner, "delete from goose_db_version where version_id = 2")
	migrate(t, cfg)
	valid("true")
	members["0003_n.concurrently.sql"] = "drop index concurrently if exists a_n"
	members["0004_c.sql"] = "alter table a add constraint positive check (n > 0) not valid"
	members["0005_c.concurrently.sql"] = "alter table a validate constraint positive"
	cfg.Files = files(members)
	migrate(t, cfg)
	valid("none")
	for _, from := range []string{"3", "5"} { // every step outside of a transaction may be repeated
		exec(t, owner, "delete from goose_db_version where version_id >= "+from)
		if from == "3" {
			exec(t, owner, "alter table a drop constraint positive")
		}
		migrate(t, cfg)
	}
	if got := text(t, cfg.URL, "select convalidated::text from pg_constraint where conname = 'positive'"); got != "true" {
		t.Fatalf("constraint is validated: got %s, want true", got)
	}
}

func TestConcurrently_StoppedProcessDoesNotBlockTwoOthers(t *testing.T) {
	t.Parallel()
	cfg := shortTimeout(dbtest.Blank(t), map[string]string{"0001_a.sql": table})
	migrate(t, cfg)
	holder := session(t, cfg.URL)
	exec(t, holder, "begin; insert into a values (3)")
	cfg.Files = files(map[string]string{"0001_a.sql": table, "0002_n.concurrently.sql": index})
	cfg.LockTimeout = 0
	stopped, stop := context.WithCancel(t.Context())
	lines, log := newLog()
	ended := make(chan error, 1)
	go func() { ended <- migrations.Migrate(stopped, cfg, log) }()
	lines.until(t, "is waiting for other transactions", "lock holder")
	stop()
	if err := <-ended; err == nil {
		t.Fatal("got no error after its context ended, want one")
	}
	var both errgroup.Group
	for _, words := range []string{"is waiting for other transactions", "another process is migrating"} {
		lines, log := newLog()
		both.Go(func() error { return migrations.Migrate(t.Context(), cfg, log) })
		lines.until(t, words)
	}
	exec(t, holder, "commit")
	if err := both.Wait(); err != nil {
		t.Fatal(err)
	}
	got := text(t, cfg.URL, `select string_agg(relname || ' ' || indisvalid, ',')
		from pg_index join pg_class on oid = indexrelid where indrelid = 'a'::regclass`)
	if want := "a_n true"; got != want {
		t.Fatalf("got index %s, want %s", got, want)
	}
}

func TestConcurrently_RefusesOtherStatements(t *testing.T) {
	t.Parallel()
	url := dbtest.Blank(t)
	for _, sql := range []string{
		"", "select", "create index a_n on a (n)", "create index concurrently a_n on a (n)",
		"drop index concurrently a_n", index + "; select", "alter table a alter column n type bigint",
		"alter table a validate constraint x, add column b int",
	} {
		members := map[string]string{"0001_a.sql": table, "0002_x.concurrently.sql": sql}
		err := migrations.Migrate(t.Context(), shortTimeout(url, members), quiet)
		if !strings.Contains(fmt.Sprint(err), "must be one statement") {
			t.Errorf("%q: got %v, want an error that it must be one statement", sql, err)
		}
	}
}
