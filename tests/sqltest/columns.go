package sqltest

import (
	"slices"
	"strings"
	"testing"

	"crier/publishing/db"
)

// Columns fails the test if the columns of a statement's result do not match the statement's row.
// The keys are statements, the values the columns of their rows. Rows in byPosition are scanned in
// column order, so their order must match too.
func Columns(t *testing.T, byPosition, byName map[string][]string) {
	t.Helper()
	_, conn := Open(t)
	result := func(sql string) (name string, columns []string) {
		name, _, _ = strings.Cut(sql, "\n")
		prepared, err := conn.Prepare(t.Context(), "", sql)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, f := range prepared.Fields {
			columns = append(columns, f.Name)
		}
		return name, columns
	}
	for sql, want := range byPosition {
		if name, got := result(sql); !slices.Equal(got, want) {
			t.Errorf("%s has the columns\n%q, want those of its row in their order\n%q", name, got, want)
		}
	}
	for sql, want := range byName {
		name, got := result(sql)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s has the columns\n%q, want those of its row\n%q", name, got, want)
		}
	}
}

// Tags returns the columns of a row type that is scanned by name, in field order.
func Tags[T any]() (names []string) {
	for _, f := range db.Fields[T]() {
		name := f.Tag.Get("db")
		if name == "" {
			name = strings.ToLower(f.Name) // like pgx.RowToStructByName
		}
		names = append(names, name)
	}
	return names
}

// Names returns the names of columns that are scanned by position.
func Names(all []db.Column) (out []string) {
	for _, c := range all {
		out = append(out, c.Name)
	}
	return out
}
