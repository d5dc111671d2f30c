package post

import (
	"maps"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// member describes how one member of a JSON object is documented and decoded.
type member[T any] struct {
	name     string
	required bool
	// schema returns the member's schema for the OpenAPI document. The schema does not include the
	// description; see doc.
	schema func(huma.Registry) *huma.Schema
	doc    string
	// decode stores the member's value in into. If the member is absent, n is a null node. If
	// decode is nil, the member is ignored.
	decode func(n node, into *T)
}

// members lists the members of a JSON object that is decoded into a T. Faults are listed in the
// same order. The OpenAPI document and the decoder use the same list.
type members[T any] struct {
	list []member[T]
	// read holds the members that have a decode function, and names holds their names.
	read  []member[T]
	names []string
}

func membersOf[T any](list ...member[T]) members[T] {
	m := members[T]{list: list}
	for _, one := range list {
		if one.decode != nil {
			m.read, m.names = append(m.read, one), append(m.names, one.name)
		}
	}
	return m
}

// decode decodes the object in n. For each member, it calls the member's decode function with the
// member's value and into. It then returns the object.
func (m members[T]) decode(n node, into *T) object {
	o := n.object(m.names...)
	for i, one := range m.read {
		one.decode(o.child(one.name, o.values[i]), into)
	}
	return o
}

// schema returns the schema of the object.
func (m members[T]) schema(r huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}}
	for _, one := range m.list {
		described := *one.schema(r)
		described.Description = one.doc
		s.Properties[one.name] = &described
		if one.required {
			s.Required = append(s.Required, one.name)
		}
	}
	return s
}

// pick returns the schema of an object that has only the members in docs. docs maps the name of
// each member to its description. required lists the required members.
func (m members[T]) pick(r huma.Registry, docs map[string]string, required ...string) *huma.Schema {
	s := m.schema(r)
	s.Required = required
	maps.DeleteFunc(s.Properties, func(name string, of *huma.Schema) bool {
		doc, picked := docs[name]
		of.Description = doc
		return !picked
	})
	return s
}

// The functions below build schemas for members, without descriptions.

func text(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeString} }

func flag(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeBoolean} }

func date(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Examples: []any{"2026-01-02T15:04:05Z"}}
}

// oneOf builds the schema of a string that must be one of words.
func oneOf(words ...any) func(huma.Registry) *huma.Schema {
	return func(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Enum: words} }
}

// whole builds the schema of a whole number from least to most. If most is 0, there is no upper
// bound.
func whole(least, most float64) func(huma.Registry) *huma.Schema {
	return func(huma.Registry) *huma.Schema {
		s := &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &least}
		if most > 0 {
			s.Maximum = &most
		}
		return s
	}
}

// anyMembers returns the schema of an object with any members.
func anyMembers(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: &huma.Schema{}}
}

// of returns the schema of T.
func of[T any](r huma.Registry) *huma.Schema { return r.Schema(reflect.TypeFor[T](), true, "") }

// listOf builds the schema of an array of T. least is the minimum number of elements.
func listOf[T any](least int) func(huma.Registry) *huma.Schema {
	return func(r huma.Registry) *huma.Schema {
		s := &huma.Schema{Type: huma.TypeArray, Items: of[T](r)}
		if least > 0 {
			s.MinItems = &least
		}
		return s
	}
}
