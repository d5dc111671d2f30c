package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// violations returns how a decoded JSON value violates a schema. at is the path of the value.
func (d document) violations(s *schema, v any, at string) []string {
	s = d.resolve(s)
	if s == nil { // anything is allowed
		return nil
	}
	if choices := append(slices.Clip(s.OneOf), s.AnyOf...); len(choices) > 0 {
		for _, one := range choices {
			if len(d.violations(one, v, at)) == 0 {
				return nil
			}
		}
		return []string{fmt.Sprintf("%s is %v, none of the choices", at, v)}
	}
	if s.Type != nil && !s.takes(v) {
		return []string{fmt.Sprintf("%s is %v, want %v", at, v, s.Type)}
	}
	if len(s.Enum) > 0 && v != nil && !slices.Contains(s.Enum, v) {
		return []string{fmt.Sprintf("%s is %v, want one of %v", at, v, s.Enum)}
	}
	switch value := v.(type) {
	case map[string]any:
		return d.memberViolations(s, value, at)
	case []any:
		var out []string
		for i, e := range value {
			out = append(out, d.violations(s.Items, e, fmt.Sprintf("%s.%d", at, i))...)
		}
		return out
	case string:
		if _, err := time.Parse(time.RFC3339, value); s.Format == "date-time" && err != nil {
			return []string{fmt.Sprintf("%s is %q, want a date", at, value)}
		}
	}
	return nil
}

func (d document) memberViolations(s *schema, object map[string]any, at string) (out []string) {
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			out = append(out, at+"."+name+" is missing")
		}
	}
	var others *schema
	if json.Unmarshal(s.Additional, &others) != nil {
		others = nil // absent or false
	}
	for name, v := range object {
		member := s.Properties[name]
		if member == nil {
			member = others
		}
		if member != nil {
			out = append(out, d.violations(member, v, at+"."+name)...)
		} else if len(s.Properties) > 0 {
			out = append(out, at+"."+name+" is not in the schema")
		}
	}
	return out
}

// takes returns whether the schema allows the type of a decoded JSON value.
func (s *schema) takes(v any) bool {
	types, ok := s.Type.([]any)
	if !ok {
		types = []any{s.Type}
	}
	kind := jsonType(v)
	number, isNumber := v.(float64)
	whole := isNumber && number == float64(int64(number))
	return slices.Contains(types, any(kind)) || whole && slices.Contains(types, any("integer"))
}

// jsonType returns the schema type of a decoded JSON value. All numbers are "number".
func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// enumerated returns all values of the enumerations in a schema.
func (d document) enumerated(s *schema) map[string]bool {
	out, seen := map[string]bool{}, map[*schema]bool{}
	var add func(*schema)
	add = func(s *schema) {
		s = d.resolve(s)
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		for _, v := range s.Enum {
			if text, ok := v.(string); ok {
				out[text] = true
			}
		}
		for _, form := range slices.Concat(s.OneOf, s.AnyOf, slices.Collect(maps.Values(s.Properties)), []*schema{s.Items}) {
			add(form)
		}
	}
	add(s)
	return out
}

// comparison compares responses with the examples.
type comparison struct {
	// enumerated holds the values of the enumerations in the response.
	enumerated map[string]bool
}

// differences returns the places where two decoded JSON values differ. at is their path.
//
// The names of members, booleans and values of enumerations must be equal. Other values are alike
// if they have the same type; null is like null only. Each element of an array must be like some
// element of the other array.
func (c comparison) differences(example, got any, at string) []string {
	if want := jsonType(example); jsonType(got) != want {
		return []string{fmt.Sprintf("%s is %v, the example has the %s %v", at, got, want, example)}
	}
	switch e := example.(type) {
	case bool:
		if e != got {
			return []string{fmt.Sprintf("%s is %v, the example has %v", at, got, e)}
		}
	case string:
		if c.enumerated[e] && e != got {
			return []string{fmt.Sprintf("%s is %v, the example has %v", at, got, e)}
		}
	case map[string]any:
		return c.memberDifferences(e, got.(map[string]any), at)
	case []any:
		g := got.([]any)
		if (len(e) == 0) != (len(g) == 0) {
			return []string{fmt.Sprintf("%s has %d elements, the example %d", at, len(g), len(e))}
		}
		return append(c.unlike(e, g, at+" of the answer"), c.unlike(g, e, at+" of the example")...)
	}
	return nil
}

func (c comparison) memberDifferences(example, got map[string]any, at string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(example)) {
		if _, ok := got[name]; !ok {
			out = append(out, at+"."+name+" is not in the answer")
			continue
		}
		out = append(out, c.differences(example[name], got[name], at+"."+name)...)
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := example[name]; !ok {
			out = append(out, at+"."+name+" is not in the example")
		}
	}
	return out
}

// unlike returns the elements of list that are like none of the models.
func (c comparison) unlike(models, list []any, at string) (out []string) {
	for i, v := range list {
		alike := func(model any) bool { return len(c.differences(model, v, "")) == 0 }
		if !slices.ContainsFunc(models, alike) {
			out = append(out, fmt.Sprintf("element %d of %s is like no other: %s", i, at, text(v)))
		}
	}
	return out
}

func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
