package env

import (
	"errors"
	"reflect"
	"strings"
)

// Var describes one variable for help texts and the documentation.
type Var struct {
	Name     string
	Required bool
	Default  string
	// Doc is the `doc` tag of the field.
	Doc string
}

// Names returns the variables that Load would read into dst, which is a struct or a pointer to one.
// The variables are in field order, and each name occurs once. For any other dst, Names returns
// nil.
func Names(dst any) []Var {
	t := reflect.TypeOf(dst)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	var out []Var
	known := map[string]bool{}
	collect(t, "", func(v Var) {
		if !known[v.Name] {
			known[v.Name] = true
			out = append(out, v)
		}
	})
	return out
}

// collect calls add for each variable declared in the struct type t or in its nested structs. It
// skips invalid tags, because Load reports them.
func collect(t reflect.Type, prefix string, add func(Var)) {
	for _, f := range fields(t) {
		ft := t.Field(f.index).Type
		switch {
		case f.err != nil:
		case f.nested && ft.Kind() == reflect.Pointer:
			collect(ft.Elem(), prefix+f.prefix, add)
		case f.nested:
			collect(ft, prefix+f.prefix, add)
		default:
			add(Var{
				Name: prefix + f.name, Required: f.required, Default: f.value, Doc: t.Field(f.index).Tag.Get("doc"),
			})
		}
	}
}

// field is a parsed `env` tag. It is used to find and describe variables; envconfig converts their
// values.
type field struct {
	index    int
	name     string // of the variable, or of the field if err is set
	prefix   string
	value    string // the default
	required bool
	nested   bool
	err      error
}

// fields returns those fields of a struct that have a variable, are nested structs, or have an
// invalid tag.
func fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		tag, tagged := sf.Tag.Lookup("env")
		f := parseTag(tag)
		f.index = i
		f.nested = f.name == "" && isStruct(sf.Type)
		switch {
		case tagged && !sf.IsExported():
			f.name, f.err = sf.Name, errors.New("is not an exported field")
		case !sf.IsExported() || !tagged && !f.nested:
			continue
		case !f.nested && f.name == "":
			f.name, f.err = sf.Name, errors.New("is a field without a variable name")
		}
		out = append(out, f)
	}
	return out
}

func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}

// parseTag parses an `env` tag the way envconfig does: a default extends to the end of the tag,
// including commas.
func parseTag(tag string) field {
	name, rest, _ := strings.Cut(tag, ",")
	f := field{name: strings.TrimSpace(name)}
	for rest != "" {
		rest = strings.TrimLeft(rest, " ")
		if value, ok := strings.CutPrefix(rest, "default="); ok {
			f.value = strings.ReplaceAll(value, `\,`, ",")
			return f
		}
		var option string
		option, rest, _ = strings.Cut(rest, ",")
		if strings.EqualFold(strings.TrimSpace(option), "required") {
			f.required = true
		}
		if p, ok := strings.CutPrefix(option, "prefix="); ok {
			f.prefix = p
		}
	}
	return f
}
