package db

import (
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5"
)

// The columns of each result are listed in only one place. Most rows are structs with db tags.
// Columns returns their select list, and pgx.RowToStructByName reads the rows.
//
// For statements that run for every post, a function pairs column names with fields, and Collect
// scans the rows without reflection.

// Columns returns the select list for rows of type T. By default, a field selects the column named
// in its db tag from the given table. A field with an sql tag selects the expression in that tag
// instead, under the name in its db tag. Fields of embedded structs are included. Fields with the
// db tag "-" are not.
func Columns[T any](table string) string {
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

// Fields returns the fields of T that have a column, in order.
func Fields[T any]() []reflect.StructField { return columnFields(reflect.TypeFor[T]()) }

// columnFields returns the fields of a struct that have a column, in order. Unexported fields have
// no column.
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

// Expand replaces the comment "/* , name */" in a statement from an sql folder with a list of
// columns.
func Expand(statement, name, list string) string {
	return strings.Replace(statement, "/* , "+name+" */", ", "+list, 1)
}

// Column pairs a result column with the variable that receives its value.
type Column struct {
	Name  string
	Value any
}

// Col returns a column and the variable that receives its value.
func Col(name string, value any) Column { return Column{Name: name, Value: value} }

// Collect reads all rows of a statement into out. It calls bind once. bind must return the columns
// of the result in order, each paired with a field of the given row.
func Collect[T any](out *[]T, bind func(*T) []Column) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var row, zero T
		var values []any
		for _, c := range bind(&row) {
			values = append(values, c.Value)
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

// Into replaces *out with all rows of a statement. It can therefore run again when a batch is
// retried.
func Into[T any](out *[]T, scan pgx.RowToFunc[T]) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*out, err = pgx.CollectRows(rows, scan)
		return err
	}
}

// Each reads all rows of a statement and then calls do for each row.
func Each[T any](scan pgx.RowToFunc[T], do func(T)) func(pgx.Rows) error {
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

// Texts converts values to a parameter of type text[]. The result is never null.
func Texts[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}
