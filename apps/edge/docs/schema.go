package docs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// line is one member of a schema, a header of a response, or the title of one form of a value that
// has several forms.
type line struct {
	// Form is the title of a form. The other fields are empty then.
	Form string
	// Path is the prefix of the name. Example: posts[].value[].
	Path, Name, Type, Text string
	// Values lists all values of the member, or is nil if it accepts others.
	Values   []string
	Required bool
}

// maxDepth is how deep the members of a schema are shown. Deeper members are shown only by their
// type.
const maxDepth = 7

// anyName stands for a member whose name is not known.
const anyName = "{name}"

// schemaLines returns the members of a value, each followed by its own members.
func schemaLines(doc *huma.OpenAPI, s *huma.Schema) []line { return membersOf(doc, s, "", 0) }

// membersOf returns the members of a value at a path: the members of an object, of the elements of
// an array, and of each form if there are several.
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

// headerLines returns the headers of a response.
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

// forms returns the alternative schemas of a value, or nil if there is only one.
func forms(s *huma.Schema) []*huma.Schema { return append(slices.Clip(s.OneOf), s.AnyOf...) }

// values returns all values that a schema, or an element of an array, may have, or nil if it
// accepts others.
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
	// An enum that only the document has, and that huma does not check, is an extension.
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
