package env

import (
	"errors"
	"reflect"
	"strings"
)

// Var describes one variable, for help texts and the documentation.
type Var struct {
	Name     string
	Required bool
	Default  string
	Doc      string // the field's `doc` tag
}

// Names lists the variables that Load would read into dst (a struct or a pointer to one), in order of its fields, each name once.
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
			add(Var{prefix + f.name, f.required, f.value, t.Field(f.index).Tag.Get("doc")})
		}
	}
}

// field is the reading of one tag; the meaning of a value stays envconfig's.
type field struct {
	index    int
	name     string // of the variable; of the field when err is set
	prefix   string
	value    string // the default
	required bool
	nested   bool
	err      error
}

// fields leaves out what has no variable.
func fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		tag, tagged := sf.Tag.Lookup("env")
		f := parseTag(tag)
		f.index = i
		f.nested = f.name == "" && (sf.Type.Kind() == reflect.Struct || sf.Type.Kind() == reflect.Pointer && sf.Type.Elem().Kind() == reflect.Struct)
		switch {
		case tagged && !sf.IsExported():
			f.name, f.err = sf.Name, errors.New("is a field that is not exported")
		case !sf.IsExported() || !tagged && !f.nested:
			continue
		case !f.nested && f.name == "":
			f.name, f.err = sf.Name, errors.New("is a field without the name of a variable")
		}
		out = append(out, f)
	}
	return out
}

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
