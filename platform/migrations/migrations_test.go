package migrations_test

import (
	"context"
	"crypto/rand"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"crier/platform/fault"
	"crier/platform/migrations"
	"crier/tests/dbtest"
)

var quiet = slog.New(slog.DiscardHandler)

func files(members map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range members {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func text(t *testing.T, url, sql string, args ...any) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	var out string
	if err := c.QueryRow(t.Context(), sql, args...).Scan(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMigrate_AppliesForwardAndIsRepeatable(t *testing.T) {
	t.Parallel()
	members := map[string]string{
		"0001_first.sql": "create table a (n int); do $$ begin insert into a values (1); end $$;",
	}
	cfg := migrations.Config{URL: dbtest.Blank(t), Files: files(members)}
	version := func(have, want int64) {
		t.Helper()
		h, w, err := migrations.Version(t.Context(), cfg)
		if err != nil || h != have || w != want {
			t.Fatalf("got version %d of %d, %v, want %d of %d", h, w, err, have, want)
		}
	}
	migrate := func() {
		t.Helper()
		if err := migrations.Migrate(t.Context(), cfg, quiet); err != nil {
			t.Fatal(err)
		}
	}
	version(0, 1)
	migrate()
	version(1, 1)
	members["0002_second.sql"] = "insert into a values (2);"
	cfg.Files = files(members)
	version(1, 2)
	migrate()
	migrate()
	version(2, 2)
	if got := text(t, cfg.URL, "select string_agg(n::text, ',' order by n) from a"); got != "1,2" {
		t.Fatalf("got rows %s, want 1,2", got)
	}
	delete(members, "0002_second.sql")
	cfg.Files = files(members)
	version(2, 1) // an old build on a newer database
}

func TestMigrate_ConcurrentNodesApplyOnce(t *testing.T) {
	t.Parallel()
	// Two databases, because they share roles but not migration locks.
	prefix := "race_" + strings.ToLower(rand.Text()[:8])
	one, two := dbtest.Blank(t), dbtest.Blank(t)
	t.Cleanup(func() { dropRoles(t, prefix, one, two) })
	members := files(map[string]string{
		"0001_slow.sql": "create table a (n int); grant select on a to crier_tenant; select pg_sleep(0.2); insert into a values (1);",
		"0002_more.sql": "insert into a values (2);",
	})
	var g errgroup.Group
	for _, url := range []string{one, two, one, two, one} {
		g.Go(func() error {
			return migrations.Migrate(t.Context(), migrations.Config{URL: url, RolePrefix: prefix, Files: members}, quiet)
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{one, two} {
		if got := text(t, url, "select string_agg(n::text, ',' order by n) from a"); got != "1,2" {
			t.Errorf("got rows %s, want 1,2", got)
		}
		if got := text(t, url, "select has_table_privilege($1, 'a', 'select')::text", prefix+"_tenant"); got != "true" {
			t.Errorf("role with the prefix has the grant: got %s, want true", got)
		}
	}
}

func TestMigrate_FailedStepIsRolledBackAndRetried(t *testing.T) {
	t.Parallel()
	members := map[string]string{
		"0001_good.sql": "create table a (n int)",
		"0002_bad.sql":  "create table b (n int); select 1 / 0;",
	}
	cfg := migrations.Config{URL: dbtest.Blank(t), Files: files(members)}
	err := migrations.Migrate(t.Context(), cfg, quiet)
	if !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "0002_bad.sql") {
		t.Fatalf("got %v, want fault.Internal with the file", err)
	}
	got := text(t, cfg.URL, "select coalesce(to_regclass('a')::text, '') || '/' || coalesce(to_regclass('b')::text, '')")
	if want := "a/"; got != want {
		t.Fatalf("got tables %s, want %s", got, want)
	}
	members["0002_bad.sql"] = "create table b (n int)"
	cfg.Files = files(members)
	if err := migrations.Migrate(t.Context(), cfg, quiet); err != nil {
		t.Fatal(err)
	}
}

func TestMigrate_RefusesPrefixThatNeedsQuoting(t *testing.T) {
	t.Parallel()
	err := migrations.Migrate(t.Context(), migrations.Config{URL: "postgres://x", RolePrefix: `a"b`}, quiet)
	if !fault.Is(err, fault.Invalid) {
		t.Fatalf("got %v, want fault.Invalid", err)
	}
}

func TestVersion_TemplateIsCurrent(t *testing.T) {
	t.Parallel()
	have, want, err := migrations.Version(t.Context(), migrations.Config{URL: dbtest.URL(t)})
	if err != nil || have != want || want == 0 {
		t.Fatalf("got version %d of %d, %v, want the latest", have, want, err)
	}
}

func TestRoles_CannotLogInOrBypassRowSecurity(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	for _, r := range []string{"tenant", "gate", "clock", "sender", "jobs", "retention"} {
		if got := text(t, url, "select (rolcanlogin or rolsuper or rolbypassrls)::text from pg_roles where rolname = $1", "crier_"+r); got != "false" {
			t.Errorf("%s can log in or bypass row security: got %s, want false", r, got)
		}
	}
}

// dropRoles revokes the grants of the prefix's roles in the databases and drops the roles, which
// databases share.
func dropRoles(t *testing.T, prefix string, urls ...string) {
	ctx := context.WithoutCancel(t.Context())
	for i, url := range urls {
		c, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Error(err)
			return
		}
		for _, r := range []string{"tenant", "gate", "clock", "sender", "jobs", "retention"} {
			name := prefix + "_" + r
			if _, err := c.Exec(ctx, "revoke all on all tables in schema public from "+name); err != nil {
				t.Error(err)
				continue
			}
			if i < len(urls)-1 {
				continue
			}
			if _, err := c.Exec(ctx, "drop role "+name); err != nil {
				t.Error(err)
			}
		}
		_ = c.Close(ctx)
	}
}
