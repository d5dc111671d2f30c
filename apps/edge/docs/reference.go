package docs

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

const (
	publicPrefix = "/public/v1/"
	// aliasPrefix is a second prefix under which the public API is served.
	aliasPrefix = "/api/public/v1/"
)

// group is a section of a reference.
type group struct {
	Name, Anchor string
	Operations   []operation
}

// operation is an operation of the document, as shown in the reference.
type operation struct {
	*huma.Operation
	Parameters []parameter
	Body       []line
	// BodyExample is the JSON of an example body, or "" if there is none.
	BodyExample string
	Answers     []answer
	// Refusals are the error responses.
	Refusals []answer
	Samples  []sample
}

type parameter struct {
	*huma.Param
	Type, Example string
	// Values lists all values that the parameter can have. It is nil if other values are possible.
	Values []string
}

type answer struct {
	Status, Text, Example string
	Lines, Headers        []line
}

// Public reports whether the operation belongs to the public API.
func (o operation) Public() bool { return isPublic(o.Path) }

// Needs names the credentials that a request can use. It returns "" if a request needs none.
// Example: cookie or session
func (o operation) Needs() string {
	var names []string
	for _, one := range o.Security {
		names = append(names, strings.Join(slices.Sorted(maps.Keys(one)), " and "))
	}
	return strings.Join(names, " or ")
}

// operationsOf returns the document's operations by id. It leaves out the aliases of the public
// API.
func operationsOf(doc *huma.OpenAPI, base string) (map[string]operation, error) {
	out := map[string]operation{}
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete} {
			if op == nil || strings.HasPrefix(op.Path, aliasPrefix) {
				continue
			}
			o, err := operationOf(doc, op, base)
			if err != nil {
				return nil, err
			}
			out[op.OperationID] = o
		}
	}
	return out, nil
}

func operationOf(doc *huma.OpenAPI, op *huma.Operation, base string) (operation, error) {
	out := operation{Operation: op}
	for _, p := range op.Parameters {
		example, err := exampleText(p.Example)
		if err != nil {
			return out, err
		}
		out.Parameters = append(out.Parameters, parameter{
			Param: p, Type: typeName(doc, p.Schema), Values: values(doc, p.Schema), Example: strings.Trim(example, `"`),
		})
	}
	if op.RequestBody != nil {
		var err error
		out.Body, out.BodyExample, err = contentOf(doc, op.RequestBody.Content)
		if err != nil {
			return out, err
		}
	}
	for status, r := range op.Responses {
		a := answer{Status: status, Text: r.Description, Headers: headerLines(doc, r.Headers)}
		if status >= "400" {
			out.Refusals = append(out.Refusals, a)
			continue
		}
		var err error
		a.Lines, a.Example, err = contentOf(doc, r.Content)
		if err != nil {
			return out, err
		}
		out.Answers = append(out.Answers, a)
	}
	byStatus := func(a, b answer) int { return strings.Compare(a.Status, b.Status) }
	slices.SortFunc(out.Answers, byStatus)
	slices.SortFunc(out.Refusals, byStatus)
	if !out.Public() {
		return out, nil
	}
	var err error
	out.Samples, err = samplesOf(out, base)
	return out, err
}

// contentOf returns a body's members and its example.
func contentOf(doc *huma.OpenAPI, content map[string]*huma.MediaType) (lines []line, example string, err error) {
	for _, m := range content {
		if m.Schema != nil {
			lines = schemaLines(doc, m.Schema)
		}
		example, err = exampleText(m.Example)
	}
	return lines, example, err
}

// exampleText returns an example as JSON, or "" if there is none.
func exampleText(example any) (string, error) {
	raw, ok := example.(json.RawMessage)
	if !ok || len(raw) == 0 {
		return "", nil
	}
	return indent(raw)
}

// order lists the sections of the public API in reading order. Other sections follow.
var order = []string{
	"The key", "Channels", "Connecting channels", "Posts", "Files", "Tags", "Posting times", "Customers",
	"Approvals", "Webhooks", "Analytics and reports", "Notifications",
}

// section returns the name of an operation's section, which is its first tag.
func (o operation) section() string { return o.Tags[0] }

// groups returns the sections of the public API and the sections of all other operations. The two
// kinds of sections have different anchor prefixes, because a section of one kind can have the same
// name as a section of the other.
func groups(operations map[string]operation) (public, application []group) {
	sections := map[bool]map[string][]operation{true: {}, false: {}}
	for _, o := range operations {
		of := sections[o.Public()]
		of[o.section()] = append(of[o.section()], o)
	}
	public = sorted(sections[true], "")
	place := func(g group) int {
		if i := slices.Index(order, g.Name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(public, func(a, b group) int { return cmp.Compare(place(a), place(b)) })
	return public, sorted(sections[false], "application-")
}

// sorted returns the sections sorted by name. Each anchor begins with prefix.
func sorted(sections map[string][]operation, prefix string) (out []group) {
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		list := sections[name]
		slices.SortFunc(list, func(a, b operation) int {
			return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
		})
		anchor := prefix + strings.ReplaceAll(strings.ToLower(name), " ", "-")
		out = append(out, group{Name: name, Anchor: anchor, Operations: list})
	}
	return out
}
