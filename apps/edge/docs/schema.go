package docs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// line describes a member of a schema or a header of a response. If a value can have several forms,
// a line can also be the title of one of these forms.
type line struct {
	// Form is the title of a form. If it is set, the other fields are empty.
	Form string
	// Path is the prefix of the name. Example: posts[].value[].
	Path, Name, Type, Text string
	// Values lists all values that the member can have. It is nil if other values are possible.
	Values   []string
	Required bool
}

// maxDepth is how many levels of nested members are shown. For deeper members, the reader sees only
// the type of the member that contains them.
const maxDepth = 7

// anyName stands for the name of a member that can have any name.
const anyName = "{name}"

// schemaLines returns the members of a value, each followed by its own members.
func schemaLines(doc *huma.OpenAPI, s *huma.Schema) []line { return membersOf(doc, s, "", 0) }

// membersOf returns the members of a value at a path. They are an object's members or the members
// of an array's elements. If the value has several forms, they also include the members of each
// form.
func membersOf(doc *huma.OpenAPI, s *huma.Schema, path string, depth int) (out []line) {
	s = resolve(doc, s)
	if depth > maxDepth {
		return nil
	}
	if s.Type == huma.TypeArray && s.Items != nil {
		return membersOf(doc, s.Items, strings.TrimSuffix(path, ".")+"[].", depth)
	}
	for i, form := range forms(s) {
		if members := membersOf(doc, form, path, depth); len(members) > 0 {
			title := fmt.Sprintf("%s, form %d: %s", cmp.Or(strings.TrimSuffix(path, "."), "The body"), i+1, typeName(doc, form))
			out = append(append(out, line{Form: title}), members...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		out = append(out, memberOf(doc, s.Properties[name], path, name, slices.Contains(s.Required, name)))
		out = append(out, membersOf(doc, s.Properties[name], path+name+".", depth+1)...)
	}
	if others, ok := s.AdditionalProperties.(*huma.Schema); ok && others != nil {
		out = append(out, memberOf(doc, others, path, anyName, false))
		out = append(out, membersOf(doc, others, path+anyName+".", depth+1)...)
	}
	return out
}

func memberOf(doc *huma.OpenAPI, s *huma.Schema, path, name string, required bool) line {
	return line{
		Path: path, Name: name, Type: typeName(doc, s), Text: cmp.Or(s.Description, resolve(doc, s).Description),
		Values: values(doc, s), Required: required,
	}
}

// headerLines returns a line for each header of a response.
func headerLines(doc *huma.OpenAPI, headers map[string]*huma.Param) (out []line) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		h := headers[name]
		if shared, ok := strings.CutPrefix(h.Ref, "#/components/headers/"); ok {
			h = doc.Components.Headers[shared]
		}
		l := memberOf(doc, h.Schema, "", name, false)
		l.Text = cmp.Or(h.Description, l.Text)
		out = append(out, l)
	}
	return out
}

// forms returns the alternative schemas of a value, or nil if it has no alternatives.
func forms(s *huma.Schema) []*huma.Schema { return append(slices.Clip(s.OneOf), s.AnyOf...) }

// values returns all values that a schema, or the elements of an array, can have. It returns nil if
// other values are possible.
func values(doc *huma.OpenAPI, s *huma.Schema) (out []string) {
	s = resolve(doc, s)
	if s.Type == huma.TypeArray && s.Items != nil {
		return values(doc, s.Items)
	}
	for _, v := range s.Enum {
		if v != nil {
			out = append(out, fmt.Sprint(v))
		}
	}
	// Enums that huma must not enforce are documented as an extension.
	documented, _ := s.Extensions["enum"].([]string)
	out = append(out, documented...)
	for _, form := range forms(s) {
		out = append(out, values(doc, form)...)
	}
	return out
}

func resolve(doc *huma.OpenAPI, s *huma.Schema) *huma.Schema {
	if s.Ref == "" {
		return s
	}
	return doc.Components.Schemas.SchemaFromRef(s.Ref)
}

// typeName returns the type of a schema in words. Example: array of string or null
func typeName(doc *huma.OpenAPI, s *huma.Schema) string {
	s = resolve(doc, s)
	name := plainTypeName(doc, s)
	if s.Nullable {
		name += " or null"
	}
	return name
}

func plainTypeName(doc *huma.OpenAPI, s *huma.Schema) string {
	switch {
	case s.Type == huma.TypeArray && s.Items != nil:
		name := typeName(doc, s.Items)
		if strings.Contains(name, " or ") {
			name = "(" + name + ")"
		}
		return "array of " + name
	case len(forms(s)) > 0:
		var names []string
		for _, form := range forms(s) {
			names = append(names, typeName(doc, form))
		}
		return strings.Join(names, " or ")
	case s.Format != "":
		return s.Type + " (" + s.Format + ")"
	case s.Type == "":
		return "any value"
	default:
		return s.Type
	}
}
