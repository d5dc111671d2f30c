package migrations_test

import (
	"context"
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

// impatient is a Config whose waits are short.
func impatient(url string, members map[string]string) migrations.Config {
	return migrations.Config{URL: url, Files: files(members), LockTimeout: 200 * time.Millisecond}
}

func migrate(t *testing.T, cfg migrations.Config) {
	t.Helper()
	if err := migrations.Migrate(t.Context(), cfg, quiet); err != nil {
		t.Fatal(err)
	}
}

// session is a connection of the owner, which shows as "somebody".
func session(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	cc, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cc.RuntimeParams["application_name"] = "somebody"
	c, err := pgx.ConnectConfig(t.Context(), cc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}

func do(t *testing.T, c *pgx.Conn, sql string) {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// journal is the log of a migration, line by line.
type journal chan string

func newJournal() (journal, *slog.Logger) {
	j := make(journal, 1000)
	return j, slog.New(slog.NewTextHandler(j, nil))
}

func (j journal) Write(line []byte) (int, error) {
	j <- string(line)
	return len(line), nil
}

// until waits for a line with the words.
func (j journal) until(t *testing.T, words ...string) {
	t.Helper()
	for {
		select {
		case line := <-j:
			missing := false
			for _, w := range words {
				missing = missing || !strings.Contains(line, w)
			}
			if !missing {
				return
			}
		case <-time.After(time.Minute):
			t.Fatalf("no line of the log has %q", words)
		}
	}
}

func TestBaseline_OfAnotherIsRefused(t *testing.T) {
	t.Parallel()
	baseline := "create table a (n int); -- what there is\n"
	same := impatient("", map[string]string{"0001_a.sql": "-- Everything.\ncreate table a\n  (n int);"})
	other := impatient("", map[string]string{"0001_a.sql": "create table a (n bigint)"})
	for name, c := range map[string]struct {
		cfg    migrations.Config
		spoil  string
		refuse bool
	}{
		"the same in other words is accepted": {same, "select", false},
		"other statements are refused":        {other, "select", true},
		"a database without one is refused":   {same, "alter table goose_db_version drop column baseline", true},
		"one that was never begun is accepted": {other, `drop table a;
			alter table goose_db_version drop column baseline; delete from goose_db_version where version_id > 0`, false},
		"a copy of the rows without comments is accepted": {same, `create table copy as table goose_db_version;
			drop table goose_db_version; alter table copy rename to goose_db_version`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := dbtest.Blank(t)
			migrate(t, impatient(url, map[string]string{"0001_a.sql": baseline}))
			do(t, session(t, url), c.spoil)
			c.cfg.URL = url
			_, _, seen := migrations.Version(t.Context(), c.cfg)
			err := migrations.Migrate(t.Context(), c.cfg, quiet)
			for _, err := range []error{seen, err} {
				if c.refuse != fault.Is(err, fault.Conflict) || !c.refuse && err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestMigrate_TriesAgainUntilTheLockIsFree(t *testing.T) {
	t.Parallel()
	cfg := impatient(dbtest.Blank(t), map[string]string{"0001_a.sql": table})
	migrate(t, cfg)
	holder := session(t, cfg.URL)
	do(t, holder, "begin; lock table a in access share mode")
	cfg.Files = files(map[string]string{"0001_a.sql": table, "0002_b.sql": "alter table a add column b int"})
	lines, log := newJournal()
	ended := make(chan error, 1)
	go func() { ended <- migrations.Migrate(t.Context(), cfg, log) }()
	lines.until(t, "waits for other transactions", "0002_b.sql", "somebody")
	for range 2 {
		lines.until(t, "did not get its lock and is tried again", "0002_b.sql", "somebody")
	}
	do(t, session(t, cfg.URL), "select count(*) from a") // between two tries
	do(t, holder, "commit")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	do(t, holder, "select b from a")
}

func TestMigrate_TakesLongerThanTheOwnersLimits(t *testing.T) {
	t.Parallel()
	cfg := impatient(dbtest.Blank(t), map[string]string{"0001_a.sql": `select pg_sleep(1.5);
		create table limits as select name, setting from pg_settings
		where name in ('statement_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout')`})
	owner := session(t, cfg.URL)
	for _, limit := range []string{"statement_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout"} {
		// In this database only: the tests share the role.
		do(t, owner, `do $$ begin
			execute format('alter role %I in database %I set `+limit+` = 1000', current_user, current_database());
		end $$`)
	}
	migrate(t, cfg)
	if got := text(t, cfg.URL, "select string_agg(setting, ' ') from limits"); got != "0 0 0" {
		t.Errorf("the limits are %s", got)
	}
}

func TestMigrate_TriesTheBackgroundJobsAgain(t *testing.T) {
	t.Parallel()
	cfg := migrations.Config{URL: dbtest.URL(t), LockTimeout: 200 * time.Millisecond}
	holder := session(t, cfg.URL)
	do(t, holder, "begin; lock table jobs.river_migration")
	lines, log := newJournal()
	ended := make(chan error, 1)
	go func() { ended <- migrations.Migrate(t.Context(), cfg, log) }()
	lines.until(t, "did not get its lock and is tried again", "of the background jobs", "somebody")
	do(t, holder, "rollback")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestMigrate_TriesAgainToReadTheVersions(t *testing.T) {
	t.Parallel()
	cfg := impatient(dbtest.Blank(t), map[string]string{"0001_a.sql": table})
	migrate(t, cfg)
	holder := session(t, cfg.URL)
	do(t, holder, "begin; lock table goose_db_version")
	if _, _, err := migrations.Version(t.Context(), cfg); !fault.Is(err, fault.Unavailable) {
		t.Errorf("the version of a locked database is read, or not for that reason: %v", err)
	}
	lines, log := newJournal()
	ended := make(chan error, 1)
	go func() { ended <- migrations.Migrate(t.Context(), cfg, log) }()
	lines.until(t, "did not get its lock and is tried again", "of the roles and versions", "somebody")
	do(t, holder, "rollback")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestMigrate_SurvivesTheLossOfTheWatcher(t *testing.T) {
	t.Parallel()
	cfg := migrations.Config{URL: dbtest.Blank(t), LockTimeout: 200 * time.Millisecond}
	holder := session(t, cfg.URL)
	do(t, holder, "begin; create schema jobs") // the baseline waits for its end
	lines, log := newJournal()
	ended := make(chan error, 1)
	go func() { ended <- migrations.Migrate(t.Context(), cfg, log) }()
	lines.until(t, "waits for other transactions", "somebody")
	do(t, holder, `select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and starts_with(query, '-- migrations.Holders')`)
	lines.until(t, "what a migration waits for cannot be read")
	do(t, holder, "rollback")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestMigrate_GivesUpAndSaysWhoIsInTheWay(t *testing.T) {
	t.Parallel()
	const lock = "begin; lock table a in access share mode"
	for name, c := range map[string]struct{ hold, next, sql, says string }{
		"a lock":             {lock, "0002_b.sql", "alter table a add column b int", "somebody"},
		"an old transaction": {"begin; insert into a values (3)", "0002_i.concurrently.sql", index, "somebody"},
		"another migration":  {"select pg_advisory_lock(x'6372696572'::bigint)", "0002_b.sql", "select", "Another process"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := impatient(dbtest.Blank(t), map[string]string{"0001_a.sql": table})
			migrate(t, cfg)
			holder := session(t, cfg.URL)
			do(t, holder, c.hold)
			cfg.Files = files(map[string]string{"0001_a.sql": table, c.next: c.sql})
			cfg.LockTimeout = 20 * time.Millisecond
			err := migrations.Migrate(t.Context(), cfg, quiet)
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), c.says) {
				t.Fatal(err)
			}
			if have, _, err := migrations.Version(t.Context(), cfg); err != nil || have != 1 {
				t.Fatal(have, err)
			}
			if err := holder.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			cfg.LockTimeout = 0
			migrate(t, cfg)
		})
	}
}

func TestConcurrently_WhatAFailedBuildLeftIsBuiltAgain(t *testing.T) {
	t.Parallel()
	members := map[string]string{
		"0001_a.sql":              table + "; insert into a values (2)",
		"0002_n.concurrently.sql": "-- No number twice.\ncreate unique index concurrently if not exists a_n on a (n);\n",
	}
	cfg := impatient(dbtest.Blank(t), members)
	valid := func(want string) {
		t.Helper()
		got := text(t, cfg.URL, `select coalesce(
			(select indisvalid::text from pg_index where indexrelid = to_regclass('a_n')), 'none')`)
		if got != want {
			t.Fatalf("valid: %s, want %s", got, want)
		}
	}
	err := migrations.Migrate(t.Context(), cfg, quiet)
	if !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "0002_n") {
		t.Fatal(err)
	}
	valid("false")
	owner := session(t, cfg.URL)
	do(t, owner, "delete from a where n = 2")
	migrate(t, cfg)
	valid("true")
	// Built, and the process died before it could write that down.
	do(t, owner, "delete from goose_db_version where version_id = 2")
	migrate(t, cfg)
	valid("true")
	members["0003_n.concurrently.sql"] = "drop index concurrently if exists a_n"
	members["0004_c.sql"] = "alter table a add constraint positive check (n > 0) not valid"
	members["0005_c.concurrently.sql"] = "alter table a validate constraint positive"
	cfg.Files = files(members)
	migrate(t, cfg)
	valid("none")
	for _, again := range []string{"3", "5"} { // every step outside of a transaction may be repeated
		do(t, owner, "delete from goose_db_version where version_id >= "+again)
		if again == "3" {
			do(t, owner, "alter table a drop constraint positive")
		}
		migrate(t, cfg)
	}
	if got := text(t, cfg.URL, "select convalidated::text from pg_constraint where conname = 'positive'"); got != "true" {
		t.Fatal("the constraint is not validated")
	}
}

func TestConcurrently_TwoProcessesAndOneThatIsStopped(t *testing.T) {
	t.Parallel()
	cfg := impatient(dbtest.Blank(t), map[string]string{"0001_a.sql": table})
	migrate(t, cfg)
	holder := session(t, cfg.URL)
	do(t, holder, "begin; insert into a values (3)")
	cfg.Files = files(map[string]string{"0001_a.sql": table, "0002_n.concurrently.sql": index})
	cfg.LockTimeout = 0
	stopped, stop := context.WithCancel(t.Context())
	lines, log := newJournal()
	ended := make(chan error, 1)
	go func() { ended <- migrations.Migrate(stopped, cfg, log) }()
	lines.until(t, "waits for other transactions", "somebody")
	stop()
	if err := <-ended; err == nil {
		t.Fatal("it did not stop")
	}
	var both errgroup.Group
	for _, words := range []string{"waits for other transactions", "another process is migrating"} {
		lines, log := newJournal()
		both.Go(func() error { return migrations.Migrate(t.Context(), cfg, log) })
		lines.until(t, words)
	}
	do(t, holder, "commit")
	if err := both.Wait(); err != nil {
		t.Fatal(err)
	}
	got := text(t, cfg.URL, `select string_agg(relname || ' ' || indisvalid, ',')
		from pg_index join pg_class on oid = indexrelid where indrelid = 'a'::regclass`)
	if got != "a_n true" {
		t.Fatal(got)
	}
}

func TestConcurrently_TakesOneStatementOfThree(t *testing.T) {
	t.Parallel()
	url := dbtest.Blank(t)
	for _, sql := range []string{
		"", "select", "create index a_n on a (n)", "create index concurrently a_n on a (n)",
		"drop index concurrently a_n", index + "; select", "alter table a alter column n type bigint",
		"alter table a validate constraint x, add column b int",
	} {
		members := map[string]string{"0001_a.sql": table, "0002_x.concurrently.sql": sql}
		err := migrations.Migrate(t.Context(), impatient(url, members), quiet)
		if err == nil || !strings.Contains(err.Error(), "must be one statement") {
			t.Errorf("%q: %v", sql, err)
		}
	}
}
