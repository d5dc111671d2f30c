// Package dbtest gives each test its own Postgres database, cloned from a migrated template.
//
// It uses the first of these servers that is available:
//
//   - TEST_DATABASE_URL, with a login that has CREATEDB and CREATEROLE and is not a superuser.
//     TEST_DATABASE_SUPER_URL is a superuser on the same server, for Super.
//   - A local cluster that all test processes share. It stops ten minutes after its last user has
//     ended; "go run ./tests/dbtest/stop" stops it at once.
//   - A container.
//
// A test that finds no server fails; it is never skipped.
package dbtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/clock"
	"crier/platform/pg"
)

const (
	patience = 10 * time.Second
	poolSize = 12
)

// Open returns the pools of a new, migrated database. The database is dropped when the test ends.
func Open(t testing.TB) *pg.DB {
	t.Helper()
	return OpenURL(t, URL(t))
}

// OpenURL is Open for a database that URL or Blank created.
func OpenURL(t testing.TB, address string) *pg.DB {
	t.Helper()
	d, err := pg.Open(context.WithoutCancel(t.Context()), pg.Config{URL: address, MaxConns: poolSize})
	if err != nil {
		t.Fatalf("open the pools: %v", err)
	}
	t.Cleanup(func() { closeInTime(t, d) })
	return d
}

// URL returns the owner's URL of a new, migrated database. The database is dropped when the test
// ends.
func URL(t testing.TB) string {
	t.Helper()
	s := need(t)
	return fresh(t, s, func(ctx context.Context, admin *pgx.Conn) (string, error) { return template(ctx, s, admin) })
}

// Blank is URL for an empty database.
func Blank(t testing.TB) string {
	t.Helper()
	return fresh(t, need(t), func(context.Context, *pgx.Conn) (string, error) { return "template0", nil })
}

// Super returns a superuser's connection to the database postgres. The connection is closed when
// the test ends.
func Super(t testing.TB) *pgx.Conn {
	t.Helper()
	s := need(t)
	if s.super == "" {
		t.Fatal(needsSuper)
	}
	c, err := pgx.Connect(t.Context(), s.super)
	if err != nil {
		t.Fatalf("connect as the superuser: %v", err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}

// TrackStatements makes pg_stat_statements record the statements of a database that URL or Blank
// created, for connections that are opened afterwards. It returns a connection from Super, on which
// the view shows them.
//
// Other databases are not tracked: the view keeps at most pg_stat_statements.max statements, and
// the other tests' statements would evict the ones that a test counts. Set
// pg_stat_statements.track=none on the server of TEST_DATABASE_URL for the same reason.
func TrackStatements(t testing.TB, address string) *pgx.Conn {
	t.Helper()
	own, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	c := Super(t)
	_, err = c.Exec(t.Context(), "create extension if not exists pg_stat_statements")
	if err != nil && !pg.IsUnique(err, "") {
		t.Fatalf("this Postgres has no pg_stat_statements: %v", err)
	}
	track := "alter database " + pgx.Identifier{own.Database}.Sanitize() + " set pg_stat_statements.track = 'top'"
	if _, err := c.Exec(t.Context(), track); err != nil {
		t.Fatalf("track the statements of %s: %v", own.Database, err)
	}
	return c
}

// SuperIn connects as a superuser to the database of an address that URL or Blank returned. The
// connection is closed when the test ends.
func SuperIn(t testing.TB, address string) *pgx.Conn {
	t.Helper()
	s := need(t)
	if s.super == "" {
		t.Fatal(needsSuper)
	}
	own, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(t.Context(), withDatabase(s.super, own.Database))
	if err != nil {
		t.Fatalf("connect to %s as the superuser: %v", own.Database, err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}

const needsSuper = "this test needs a superuser: set TEST_DATABASE_SUPER_URL as well as TEST_DATABASE_URL"

func need(t testing.TB) server {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatalf("no Postgres for tests: %v", err)
	}
	return s
}

// fresh creates a database from the template that from names, and drops it when the test ends. It
// returns the owner's URL.
func fresh(t testing.TB, s server, from func(context.Context, *pgx.Conn) (string, error)) string {
	t.Helper()
	name := fmt.Sprintf("%s%d_%s", clonePrefix, clock.System{}.Now().Unix(), strings.ToLower(rand.Text()[:8]))
	err := owner.do(t.Context(), s.owner, func(ctx context.Context, admin *pgx.Conn) error {
		tpl, err := from(ctx, admin)
		if err != nil {
			return fmt.Errorf("the template: %w", err)
		}
		_, err = admin.Exec(ctx, "create database "+name+" template "+tpl+" strategy file_copy")
		return err
	})
	if err != nil {
		t.Fatalf("make a test database: %v", err)
	}
	t.Cleanup(func() { drop(t, s, name) })
	return withDatabase(s.owner, name)
}

// drop drops a database. It connects as the superuser if there is one, because only a superuser may
// end an autovacuum of the database.
func drop(t testing.TB, s server, name string) {
	err := super.do(t.Context(), cmp.Or(s.super, s.owner), func(ctx context.Context, admin *pgx.Conn) error {
		_, err := admin.Exec(ctx, "drop database if exists "+name+" with (force)")
		return err
	})
	if err != nil {
		t.Errorf("drop %s: %v", name, err)
	}
}

// closeInTime closes the pools. If a connection was not released in time, it fails the test instead
// of waiting longer.
func closeInTime(t testing.TB, d *pg.DB) {
	closed := make(chan struct{})
	go func() { d.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Errorf("the pools did not close within %s: a connection was not released", patience)
	}
}

// Patient returns the URL with a connect timeout of 30 seconds, for processes that start while
// others keep all cores busy.
func Patient(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // the process will refuse it
	}
	q := u.Query()
	q.Set("connect_timeout", "30")
	u.RawQuery = q.Encode()
	return u.String()
}

func withDatabase(address, name string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // already checked by choose
	}
	u.Path = "/" + name
	return u.String()
}
