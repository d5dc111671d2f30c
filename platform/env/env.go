// Package env is the only door to the environment: it fills configuration structs and tells every fault at once.
package env

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/sethvargo/go-envconfig"
)

// Lookup finds a variable. An empty value counts as unset, as compose files and shells write it.
type Lookup = func(name string) (value string, ok bool)

// OS looks into the process's environment.
func OS() Lookup { return os.LookupEnv }

// With lets the values of over (flags) win over those of lookup. An empty value in over changes nothing.
func With(lookup Lookup, over map[string]string) Lookup {
	return func(name string) (string, bool) {
		if v := over[name]; v != "" {
			return v, true
		}
		return lookup(name)
	}
}

// Defaults gives the values of under to what lookup leaves unset or empty.
func Defaults(lookup Lookup, under map[string]string) Lookup {
	return func(name string) (string, bool) {
		if v, ok := lookup(name); ok && v != "" {
			return v, true
		}
		v, ok := under[name]
		return v, ok
	}
}

// Fault is what is wrong with one variable. Message is a sentence without the name and without the value, which may be secret.
type Fault struct{ Name, Message string }

func (f Fault) Error() string { return f.Name + ": " + f.Message }

// Load fills the struct that dst points to from the `env:"NAME, required"` and `env:"NAME, default=x"` tags of its fields,
// nested structs included (`env:", prefix=X_"` prefixes their names), then calls Validate() error of every struct; of a variable that could not be read, what Validate says is dropped.
// All faults come back joined, one "NAME: sentence" a line; errors.As finds a Fault. After an error dst is not to be used.
func Load(ctx context.Context, lookup Lookup, dst any) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("env.Load: %T is not a pointer to a struct", dst)
	}
	l := &loader{ctx: ctx, seen: map[string]bool{}, unread: map[string]bool{}, lookup: func(name string) (string, bool) {
		v, ok := lookup(name)
		return v, ok && v != ""
	}}
	l.load(v.Elem(), "")
	return errors.Join(l.faults...)
}

type loader struct {
	ctx    context.Context
	lookup Lookup
	faults []error
	seen   map[string]bool
	unread map[string]bool // variables without a usable value
}

// add takes joined errors apart and drops what is known: two structs may share a variable, and what cannot be read breaks every rule.
func (l *loader) add(err error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			l.add(one)
		}
		return
	}
	if name, _, _ := strings.Cut(err.Error(), ": "); l.unread[name] {
		return
	}
	if !l.seen[err.Error()] {
		l.seen[err.Error()] = true
		l.faults = append(l.faults, err)
	}
}

func (l *loader) load(v reflect.Value, prefix string) {
	fail := func(f Fault) { l.add(f); l.unread[f.Name] = true }
	for _, f := range fields(v.Type()) {
		if f.err != nil {
			fail(Fault{f.name, f.err.Error()})
			continue
		}
		at := v.Field(f.index)
		if f.nested {
			if at.Kind() == reflect.Pointer {
				at.Set(reflect.New(at.Type().Elem()))
				at = at.Elem()
			}
			l.load(at, prefix+f.prefix)
			continue
		}
		if err := l.field(at, v.Type().Field(f.index), prefix); err != nil {
			fail(Fault{prefix + f.name, sentence(err, at.Type())})
		}
	}
	if val, ok := v.Addr().Interface().(interface{ Validate() error }); ok {
		if err := val.Validate(); err != nil {
			l.add(err)
		}
	}
}

// field hands envconfig a struct of this one field, since it stops at its first fault.
func (l *loader) field(at reflect.Value, f reflect.StructField, prefix string) error {
	one := reflect.New(reflect.StructOf([]reflect.StructField{{Name: f.Name, Type: f.Type, Tag: f.Tag}}))
	err := envconfig.ProcessWith(l.ctx, &envconfig.Config{
		Target: one.Interface(), Lookuper: envconfig.PrefixLookuper(prefix, lookuper(l.lookup)),
	})
	if err == nil {
		at.Set(one.Elem().Field(0))
	}
	return err
}

type lookuper Lookup

func (l lookuper) Lookup(key string) (string, bool) { return l(key) }

// sentence is for people; only a decoder of the type's own may quote the value.
func sentence(err error, t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	_, decodes := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	switch {
	case errors.Is(err, envconfig.ErrMissingRequired):
		return "is required"
	case t == reflect.TypeFor[slog.Level]():
		return "must be debug, info, warn or error"
	case decodes:
	case t == reflect.TypeFor[time.Duration]():
		return "must be a duration such as 30s, 5m or 12h"
	case t.Kind() == reflect.Bool:
		return "must be true or false"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		return "must be a whole number in range"
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64:
		return "must be a whole number in range, zero or more"
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		return "must be a number"
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Struct:
		return "each entry " + sentence(err, t.Elem())
	}
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return "is not valid: " + err.Error()
}
