// Package dbtest gives each test a Postgres database of its own, cloned from a migrated template.
//
// The server is TEST_DATABASE_URL (an owner with CREATEDB and CREATEROLE, no superuser; TEST_DATABASE_SUPER_URL beside it for Super),
// else one local cluster that all test processes share, else a container. The shared cluster stops itself ten minutes after its
// last user is gone; `go run ./tests/dbtest/stop` stops it at once. Without a server the test fails: it is never skipped.
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

// Open gives the pools of a fresh, migrated database, which is dropped when the test ends.
func Open(t testing.TB) *pg.DB {
	t.Helper()
	return OpenURL(t, URL(t))
}

// OpenURL is Open for a database that URL or Blank made.
func OpenURL(t testing.TB, address string) *pg.DB {
	t.Helper()
	d, err := pg.Open(context.WithoutCancel(t.Context()), pg.Config{URL: address, MaxConns: poolSize})
	if err != nil {
		t.Fatalf("open the pools: %v", err)
	}
	t.Cleanup(func() { closeInTime(t, d) })
	return d
}

// URL is the owner's address of a fresh, migrated database, which is dropped when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	s := need(t)
	return fresh(t, s, func(ctx context.Context, admin *pgx.Conn) (string, error) { return template(ctx, s, admin) })
}

// Blank is URL for a database with nothing in it.
func Blank(t testing.TB) string {
	t.Helper()
	return fresh(t, need(t), func(context.Context, *pgx.Conn) (string, error) { return "template0", nil })
}

// Super is a superuser's connection to the database "postgres", where pg_stat_statements shows all databases' statements. Closed when the test ends.
func Super(t testing.TB) *pgx.Conn {
	t.Helper()
	s := need(t)
	if s.super == "" {
		t.Fatal("this test needs a superuser: set TEST_DATABASE_SUPER_URL beside TEST_DATABASE_URL")
	}
	c, err := pgx.Connect(t.Context(), s.super)
	if err != nil {
		t.Fatalf("connect as the superuser: %v", err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	if _, err := c.Exec(t.Context(), "create extension if not exists pg_stat_statements"); err != nil && !pg.IsUnique(err, "") {
		t.Fatalf("this Postgres has no pg_stat_statements: %v", err)
	}
	return c
}

func need(t testing.TB) server {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatalf("no Postgres for tests: %v", err)
	}
	return s
}

// fresh makes a database from the template that from names, and sees to its end.
func fresh(t testing.TB, s server, from func(context.Context, *pgx.Conn) (string, error)) string {
	t.Helper()
	ctx := t.Context()
	admin, err := pgx.Connect(ctx, s.owner)
	if err != nil {
		t.Fatalf("connect as the owner: %v", err)
	}
	defer admin.Close(context.WithoutCancel(ctx))
	tpl, err := from(ctx, admin)
	if err != nil {
		t.Fatalf("make the template: %v", err)
	}
	name := fmt.Sprintf("%s%d_%s", clonePrefix, clock.System{}.Now().Unix(), strings.ToLower(rand.Text()[:8]))
	if _, err := admin.Exec(ctx, "create database "+name+" template "+tpl+" strategy file_copy"); err != nil {
		t.Fatalf("make a test database: %v", err)
	}
	t.Cleanup(func() { drop(t, s, name) })
	return withDatabase(s.owner, name)
}

// drop is the superuser's where there is one: only that may end an autovacuum of the database.
func drop(t testing.TB, s server, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	admin, err := pgx.Connect(ctx, cmp.Or(s.super, s.owner))
	if err != nil {
		t.Errorf("connect to drop %s: %v", name, err)
		return
	}
	defer admin.Close(ctx)
	if _, err := admin.Exec(ctx, "drop database if exists "+name+" with (force)"); err != nil {
		t.Errorf("drop %s: %v", name, err)
	}
}

// closeInTime tells of a borrowed connection instead of waiting for it for ever.
func closeInTime(t testing.TB, d *pg.DB) {
	closed := make(chan struct{})
	go func() { d.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Error("the pools do not close: a connection was not given back")
	}
}

func withDatabase(address, name string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // checked when the server was chosen
	}
	u.Path = "/" + name
	return u.String()
}
