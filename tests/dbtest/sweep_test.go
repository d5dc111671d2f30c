package dbtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestSweep_DropsOnlyOldDatabases(t *testing.T) {
	t.Parallel()
	s := need(t)
	admin, err := pgx.Connect(t.Context(), s.owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close(context.WithoutCancel(t.Context())) })
	const old = clonePrefix + "1000_left"
	if _, err := admin.Exec(t.Context(), "drop database if exists "+old); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec(t.Context(), "create database "+old+" template template0"); err != nil {
		t.Fatal(err)
	}
	var young string
	kept, err := pgx.Connect(t.Context(), Blank(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.QueryRow(t.Context(), "select current_database()").Scan(&young); err != nil {
		t.Fatal(err)
	}
	if err := kept.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := sweep(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := admin.QueryRow(t.Context(), "select array_agg(datname::text) from pg_database where datname in ($1, $2)", old, young).Scan(&names); err != nil {
		t.Fatal(err)
	}
	if len(names) != 1 || names[0] != young {
		t.Fatalf("got databases %v, want only %s", names, young)
	}
}
