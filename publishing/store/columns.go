package store

import (
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5"
)

// The columns of a result are listed once. Rows that lists read are structs with db tags: columns makes the select list
// of them, and pgx.RowToStructByName reads them. Rows of the statements that run for every post have a method or a
// function that pairs the names with the fields, and collect scans them without reflection.

// columns returns the select list for rows of T. The column of a field is the one of its db tag, in the given table; a
// field with an sql tag has that expression instead, under the name of the db tag. Fields of embedded structs belong to
// the list, fields with the db tag "-" do not.
func columns[T any](table string) string {
	var list []string
	for _, f := range columnFields(reflect.TypeFor[T]()) {
		name, expression := f.Tag.Get("db"), f.Tag.Get("sql")
		if expression == "" {
			list = append(list, table+"."+name)
			continue
		}
		list = append(list, expression+" as "+name)
	}
	return strings.Join(list, ", ")
}

// columnFields returns the fields of a struct that have a column, in their order. Fields that are not exported have
// none.
func columnFields(row reflect.Type) []reflect.StructField {
	var fields []reflect.StructField
	for i := range row.NumField() {
		f := row.Field(i)
		switch {
		case f.Anonymous:
			fields = append(fields, columnFields(f.Type)...)
		case f.IsExported() && f.Tag.Get("db") != "-":
			fields = append(fields, f)
		}
	}
	return fields
}

// expand puts a list of columns into a statement of the folder sql, in the place of the comment "/* , name */".
func expand(statement, name, list string) string {
	return strings.Replace(statement, "/* , "+name+" */", ", "+list, 1)
}

// column is a column of a result and the variable that takes its value.
type column struct {
	name  string
	value any
}

func col(name string, value any) column { return column{name: name, value: value} }

// collect reads all rows of a statement into out. bind returns the columns of the result, in their order, with the
// fields of a row; it is called once.
func collect[T any](out *[]T, bind func(*T) []column) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var row, zero T
		var values []any
		for _, c := range bind(&row) {
			values = append(values, c.value)
		}
		*out = nil
		_, err := pgx.ForEachRow(rows, values, func() error {
			*out = append(*out, row)
			row = zero
			return nil
		})
		return err
	}
}

// into replaces *out by all rows of a statement, so that it may be called again when a batch is retried.
func into[T any](out *[]T, scan pgx.RowToFunc[T]) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*out, err = pgx.CollectRows(rows, scan)
		return err
	}
}

// each calls do for every row of a statement, after all rows are read.
func each[T any](scan pgx.RowToFunc[T], do func(T)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, scan)
		if err != nil {
			return err
		}
		for _, row := range all {
			do(row)
		}
		return nil
	}
}
