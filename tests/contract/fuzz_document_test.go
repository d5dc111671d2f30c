package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// schema is the part of a JSON schema that values are generated from.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"` // a string or a list of strings
	Format     string             `json:"format"`
	Enum       []any              `json:"enum"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	// Additional is false, or the schema of the members that Properties does not have.
	Additional json.RawMessage `json:"additionalProperties"`
	Items      *schema         `json:"items"`
	OneOf      []*schema       `json:"oneOf"`
	AnyOf      []*schema       `json:"anyOf"`
	Minimum    *float64        `json:"minimum"`
	Maximum    *float64        `json:"maximum"`
}

// parameter is an input of a route outside its body.
type parameter struct {
	Name     string  `json:"name"`
	In       string  `json:"in"` // path, query or header
	Required bool    `json:"required"`
	Schema   *schema `json:"schema"`
}

// operation is a route in the OpenAPI document.
type operation struct {
	method, path string
	Parameters   []parameter `json:"parameters"`
	Body         struct {
		Content map[string]struct {
			Schema *schema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
	Security []map[string]any `json:"security"`
}

// document is the OpenAPI document of the service.
type document struct {
	Paths      map[string]map[string]*operation `json:"paths"`
	Components struct {
		Schemas map[string]*schema `json:"schemas"`
	} `json:"components"`
}

// readDocument returns the document that the service serves, and its routes.
func readDocument(t *testing.T, r *rig) (document, []*operation) {
	t.Helper()
	visitor := org{rig: r}
	d := read[document](t, visitor.get(t, "/openapi.json").want(t, 200))
	var all []*operation
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			op := d.Paths[path][method]
			op.method, op.path = strings.ToUpper(method), path
			all = append(all, op)
		}
	}
	if len(all) < 100 {
		t.Fatalf("the document has %d routes, want more than 100", len(all))
	}
	return d, all
}

func (d document) resolve(s *schema) *schema {
	for s != nil && s.Ref != "" {
		s = d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	return s
}

func (s *schema) kind(t *rapid.T) string {
	switch kind := s.Type.(type) {
	case string:
		return kind
	case []any:
		return fmt.Sprint(kind[rapid.IntRange(0, len(kind)-1).Draw(t, "type")])
	}
	return ""
}

// words are strings that have broken services.
var words = []string{
	"", " ", "0", "-1", "null", "x", "\x00", "a\x00b", "\u202e", "é", "é", "🙂🙂🙂", "'; drop table post; --", "%s%n", "../../etc/passwd",
	"9223372036854775808", "1e400", "true", "2040-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2040-02-30", "Asia/Kolkata",
	"http://127.0.0.1/", "https://[::1]/", "http://user:password@localhost:1/", "javascript:alert(1)", "someone@crier.test", "now", "schedule", "draft",
	"{}", "[]", strings.Repeat("a", 300), strings.Repeat("é", 70000), "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
}

// maker generates requests from the document. seen holds strings from earlier responses to the same
// organization, such as ids, keyed by the first part of the path that returned them.
type maker struct {
	document
	seen map[string][]string
	// channelID is the id of a channel of the organization.
	channelID string
	// clean turns off deliberate mistakes.
	clean bool
}

// wrong returns whether to make a deliberate mistake, in one of n cases.
func (m maker) wrong(t *rapid.T, n int) bool {
	return !m.clean && rapid.IntRange(1, n).Draw(t, "wrong") == 1
}

// plausible holds plausible values of members, keyed by name.
var plausible = map[string][]string{
	"color": {"#123456", "#abcdef"}, "content": {"Some words", "🙂"}, "email": {"someone@crier.test", "other@crier.test"},
	"url": {"https://example.com/hook", base + "/files/x"}, "timezone": {"Asia/Kolkata", "UTC"}, "type": {"schedule", "draft", "now"},
	"password": {password}, "oldPassword": {password}, "newPassword": {"another good password"}, "confirm": {"DELETE"},
	"date": {"2040-01-01T00:00:00Z"}, "from": {"2026-01-01T00:00:00Z"}, "startDate": {"2026-01-01"}, "endDate": {"2026-12-01"}, "page": {"0", "1"},
	"integration": {"sandbox-oauth", "sandbox"}, "connector": {"sandbox-oauth"}, "provider": {"sandbox-oauth", "LOCAL", "GITHUB"}, "methodName": {"topics"},
	"status": {"schedule", "draft"}, "role": {"USER", "ADMIN"}, "event": {"post.published"}, "name": {"A name"},
}

// text returns a string. near is the name of the member or the path that the string is for.
func (m maker) text(t *rapid.T, near string) string {
	known := m.seen[strings.TrimSuffix(near, "s")]
	if len(known) == 0 && len(plausible[near]) == 0 {
		known = slices.Concat(slices.Collect(maps.Values(m.seen))...)
		slices.Sort(known)
	}
	known = append(slices.Clip(known), plausible[near]...)
	switch {
	case len(known) > 0 && !m.wrong(t, 3):
		return rapid.SampledFrom(known).Draw(t, "known")
	case m.wrong(t, 2):
		return rapid.SampledFrom(words).Draw(t, "word")
	}
	return rapid.StringN(0, 40, 400).Draw(t, "text")
}

// value returns a value that usually has the type of the schema, and sometimes any other type.
func (m maker) value(t *rapid.T, s *schema, near string, depth int) any {
	s = m.resolve(s)
	if s == nil || depth > 8 || m.wrong(t, 25) {
		return m.anything(t)
	}
	if len(s.Enum) > 0 {
		return rapid.SampledFrom(s.Enum).Draw(t, "enum")
	}
	if choices := append(s.OneOf, s.AnyOf...); len(choices) > 0 {
		return m.value(t, rapid.SampledFrom(choices).Draw(t, "choice"), near, depth+1)
	}
	switch s.kind(t) {
	case "object":
		return m.object(t, s, near, depth)
	case "array":
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list = append(list, m.value(t, s.Items, near, depth+1))
		}
		return list
	case "string":
		if s.Format == "date-time" && !m.wrong(t, 4) {
			return rapid.SampledFrom([]string{"2040-01-01T00:00:00Z", "2040-06-30T12:00:00+05:30", "2039-12-31"}).Draw(t, "date")
		}
		return m.text(t, near)
	case "integer":
		return m.integer(t, s)
	case "number":
		return rapid.Float64Range(-1e6, 1e6).Draw(t, "number")
	case "boolean":
		return rapid.Bool().Draw(t, "boolean")
	case "null":
		return nil
	}
	return m.anything(t)
}

// object returns an object that sometimes lacks members, and sometimes has one that the schema does
// not name.
func (m maker) object(t *rapid.T, s *schema, near string, depth int) map[string]any {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if slices.Contains(s.Required, name) && !m.wrong(t, 30) || rapid.Bool().Draw(t, "optional") {
			within := name
			if name == "id" { // the id of the enclosing object
				within = near
			}
			out[name] = m.value(t, s.Properties[name], within, depth+1)
		}
	}
	if m.wrong(t, 15) {
		out[m.text(t, "")] = m.anything(t)
	}
	return out
}

func (m maker) integer(t *rapid.T, s *schema) any {
	low, high := 0.0, 1000.0
	if s.Minimum != nil {
		low = *s.Minimum
	}
	if s.Maximum != nil {
		high = *s.Maximum
	}
	if m.wrong(t, 10) {
		low, high = low-1, low-1
	}
	if m.wrong(t, 15) {
		return rapid.SampledFrom([]any{json.Number("9223372036854775808"), json.Number("-9223372036854775808"), json.Number("1e400"), 0.5}).Draw(t, "far")
	}
	return rapid.Int64Range(int64(low), int64(max(low, high))).Draw(t, "integer")
}

func (m maker) anything(t *rapid.T) any {
	deep := any("x")
	for range 200 {
		deep = []any{deep}
	}
	return rapid.SampledFrom([]any{
		nil, true, 0, -1, 1.5, json.Number("1e400"), m.text(t, ""), []any{}, []any{nil}, map[string]any{}, map[string]any{"id": m.text(t, "")}, deep,
	}).Draw(t, "anything")
}

// scalar returns a value in the text form for a path, a query or a header.
func (m maker) scalar(t *rapid.T, s *schema, near string) string {
	switch v := m.value(t, s, near, 0).(type) {
	case string:
		return v
	case nil:
		return ""
	default:
		return fmt.Sprint(v)
	}
}
