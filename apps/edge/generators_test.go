package edge_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"crier/apps/edge"
)

// object is a decoded JSON object.
type object = map[string]any

// readDocument returns the OpenAPI document, decoded.
func readDocument(t *testing.T) object {
	t.Helper()
	raw, err := edge.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return doc.(object)
}

// escape returns a name as a part of a JSON pointer.
func escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// walk calls visit for each object in a decoded value and its JSON pointer. It does not enter
// examples.
func walk(v any, at string, visit func(at string, o object)) {
	switch value := v.(type) {
	case object:
		visit(at, value)
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if name != "example" && name != "examples" {
				walk(value[name], at+"/"+escape(name), visit)
			}
		}
	case []any:
		for i, element := range value {
			walk(element, fmt.Sprintf("%s/%d", at, i), visit)
		}
	}
}

// TestExamples_MatchTheirSchemas validates every example and every default of the document: those
// of parameters, bodies and answers, and those within schemas.
func TestExamples_MatchTheirSchemas(t *testing.T) {
	t.Parallel()
	doc := readDocument(t)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("document.json", doc); err != nil {
		t.Fatal(err)
	}
	found := 0
	check := func(schema string, example any) {
		found++
		s, err := c.Compile("document.json#" + schema)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(example); err != nil {
			t.Errorf("the example of %s is not valid: %v", schema, err)
		}
	}
	walk(doc, "", func(at string, o object) {
		if _, ok := o["schema"].(object); ok { // a parameter, a header or a body
			if example, ok := o["example"]; ok {
				check(at+"/schema", example)
			}
			named, _ := o["examples"].(object)
			for _, one := range named {
				check(at+"/schema", one.(object)["value"])
			}
		}
		if strings.HasSuffix(at, "/properties") {
			return // its members are schemas, whatever their names
		}
		list, _ := o["examples"].([]any)
		for _, example := range list {
			check(at, example)
		}
		if preset, ok := o["default"]; ok {
			check(at, preset)
		}
	})
	if found < 100 {
		t.Errorf("got %d examples, want at least 100", found)
	}
}

// TestDocument_SuitsGenerators checks the rules by which the clients of openapi-typescript, orval
// and oapi-codegen compile and accept every answer. The long test
// TestGenerated_ClientsAcceptEveryAnswer runs the three.
func TestDocument_SuitsGenerators(t *testing.T) {
	t.Parallel()
	doc := readDocument(t)
	wrong := func(at, format string, args ...any) { t.Errorf("%s: "+format, append([]any{at}, args...)...) }
	ids := map[string]string{}
	walk(doc, "", func(at string, o object) {
		if id, ok := o["operationId"].(string); ok {
			plain := strings.ToLower(strings.ReplaceAll(id, "-", ""))
			if ids[plain] != "" {
				wrong(at, "the operation has the name of %s", ids[plain])
			}
			ids[plain] = at
		}
		if strings.HasSuffix(at, "/properties") {
			return
		}
		types, _ := o["type"].([]any)
		values, enumerated := o["enum"].([]any)
		if slices.Contains(types, any("null")) && enumerated && !slices.Contains(values, nil) {
			wrong(at, "null is allowed by the type and refused by the enumeration")
		}
		if _, named := o["properties"].(object); named && o["additionalProperties"] != nil {
			wrong(at, "additionalProperties beside properties gives an object members of any name")
		}
		if o["type"] == "number" && o["format"] != "double" {
			wrong(at, "a number without the format double loses digits in Go")
		}
		if _, ok := o["default"]; ok && !strings.Contains(at, "/parameters/") {
			wrong(at, "a member with a default is a required one in TypeScript")
		}
	})
	for name := range doc["components"].(object)["schemas"].(object) {
		if strings.TrimRight(name, "0123456789") != name {
			wrong("/components/schemas/"+name, "the schema has no name of its own")
		}
	}
}
