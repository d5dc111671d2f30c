// Package env fills configuration structs from environment variables and reports all faults at
// once. No other package reads the environment.
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

// Lookup returns the value of a variable. An empty value counts as unset, because compose files and
// shells represent unset variables that way.
type Lookup = func(name string) (value string, ok bool)

// OS returns a Lookup that reads the process's environment on each call.
func OS() Lookup { return os.LookupEnv }

// With returns a Lookup that looks for a variable in over first and then calls lookup. Empty values
// in over are ignored. For example, over can contain command-line flags.
func With(lookup Lookup, over map[string]string) Lookup {
	return func(name string) (string, bool) {
		if v := over[name]; v != "" {
			return v, true
		}
		return lookup(name)
	}
}

// Defaults returns a Lookup that calls lookup and falls back to the value in under if the variable
// is unset or empty.
func Defaults(lookup Lookup, under map[string]string) Lookup {
	return func(name string) (string, bool) {
		if v, ok := lookup(name); ok && v != "" {
			return v, true
		}
		v, ok := under[name]
		return v, ok
	}
}

// Fault is an error in one variable. Example: "S3_REGION: must be set with FILES=s3"
type Fault struct {
	// Name is the name of the variable, or of the field if its tag is invalid.
	Name string
	// Message is a predicate without a subject, such as "is required". It must not contain the
	// value, which may be secret.
	Message string
}

// Error returns the name and the message, separated by a colon. Load expects all errors from
// Validate methods in this form.
func (f Fault) Error() string { return f.Name + ": " + f.Message }

// Load fills the struct that dst points to, and its nested structs, from the variables named in the
// tags of their fields. A prefix applies to all variables of a nested struct.
//
//	URL   string  `env:"DATABASE_URL, required"`
//	Conns int     `env:"DATABASE_CONNS, default=16"`
//	App   AppConf `env:", prefix=APP_"`
//
// Load then calls the Validate() error method of every struct that has one. If a variable is
// missing or cannot be parsed, Load drops the faults that Validate reports for it.
//
// Load returns one error that joins all faults. Its text has one line per fault: the variable's
// name, a colon and a sentence. errors.As finds a Fault in the error. After an error, dst must not
// be used. Load also fails if dst is not a pointer to a struct.
func Load(ctx context.Context, lookup Lookup, dst any) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("env.Load: %T is not a pointer to a struct", dst)
	}
	nonEmpty := func(name string) (string, bool) {
		v, ok := lookup(name)
		return v, ok && v != ""
	}
	l := &loader{ctx: ctx, lookup: nonEmpty, seen: map[string]bool{}, unusable: map[string]bool{}}
	l.load(v.Elem(), "")
	return errors.Join(l.faults...)
}

type loader struct {
	ctx      context.Context
	lookup   Lookup
	faults   []error
	seen     map[string]bool
	unusable map[string]bool // variables whose value is missing or cannot be parsed
}

// add adds err. If err joins several errors, add adds each of them. It drops duplicates, which
// occur if two structs share a variable, and faults in unusable variables.
func (l *loader) add(err error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			l.add(one)
		}
		return
	}
	if name, _, _ := strings.Cut(err.Error(), ": "); l.unusable[name] {
		return
	}
	if !l.seen[err.Error()] {
		l.seen[err.Error()] = true
		l.faults = append(l.faults, err)
	}
}

// load validates v even if one of its variables has a fault. add then drops further faults in that
// variable.
func (l *loader) load(v reflect.Value, prefix string) {
	fail := func(f Fault) { l.add(f); l.unusable[f.Name] = true }
	for _, f := range fields(v.Type()) {
		if f.err != nil {
			fail(Fault{Name: f.name, Message: f.err.Error()})
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
			fail(Fault{Name: prefix + f.name, Message: sentence(err, at.Type())})
		}
	}
	if val, ok := v.Addr().Interface().(interface{ Validate() error }); ok {
		if err := val.Validate(); err != nil {
			l.add(err)
		}
	}
}

// field sets one field. It passes envconfig a struct with only this field, because envconfig stops
// at the first fault.
func (l *loader) field(at reflect.Value, f reflect.StructField, prefix string) error {
	one := reflect.New(reflect.StructOf([]reflect.StructField{{Name: f.Name, Type: f.Type, Tag: f.Tag}}))
	err := envconfig.ProcessWith(l.ctx, &envconfig.Config{
		Target: one.Interface(), Lookuper: envconfig.PrefixLookuper(prefix, lookuper(l.lookup)),
	})
	if err != nil {
		return err
	}
	at.Set(one.Elem().Field(0))
	return nil
}

type lookuper Lookup

func (l lookuper) Lookup(key string) (string, bool) { return l(key) }

// sentence returns the Fault message for err. The message contains the variable's value only if the
// type's UnmarshalText put the value into err.
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
