package docs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// withoutText is the number of members and parameters of the public API without a description. It
// may only decrease.
const withoutText = 0

// TestDocument_DescribesOperationsAndMembers: each operation of the public API, each parameter and
// each member of a schema has a description. An operation that can respond with 409 explains when.
func TestDocument_DescribesOperationsAndMembers(t *testing.T) {
	t.Parallel()
	doc := decode[struct {
		Paths map[string]map[string]struct {
			ID          string `json:"operationId"`
			Description string
			Parameters  []struct{ Name, Description string }
			Responses   map[string]any
		}
		Components struct{ Schemas map[string]any }
	}](t, get(t, "/public/v1/openapi.json").body)
	var bare []string
	for _, methods := range doc.Paths {
		for _, op := range methods {
			if op.Description == "" {
				t.Errorf("%s has no description", op.ID)
			}
			if op.Responses["409"] != nil && !strings.Contains(op.Description, "409") {
				t.Errorf("%s does not say what its 409 means", op.ID)
			}
			for _, p := range op.Parameters {
				if p.Description == "" {
					bare = append(bare, op.ID+": "+p.Name)
				}
			}
		}
	}
	for name, schema := range doc.Components.Schemas {
		bare = append(bare, bareMembers(doc.Components.Schemas, schema, name)...)
	}
	slices.Sort(bare)
	if got := len(bare); got != withoutText {
		t.Errorf("%d members have no description, want %d (fewer are welcome: lower the number):\n%s",
			got, withoutText, strings.Join(bare, "\n"))
	}
}

// bareMembers returns the members of a decoded schema that have no description, neither directly
// nor through the schema that they refer to.
func bareMembers(all map[string]any, schema any, path string) (out []string) {
	object, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	properties, _ := object["properties"].(map[string]any)
	for name, member := range properties {
		m, _ := member.(map[string]any)
		ref, _ := m["$ref"].(string)
		shared, _ := all[strings.TrimPrefix(ref, "#/components/schemas/")].(map[string]any)
		if m["description"] == nil && shared["description"] == nil {
			out = append(out, path+"."+name)
		}
		out = append(out, bareMembers(all, member, path+"."+name)...)
	}
	for _, key := range []string{"items", "additionalProperties"} {
		out = append(out, bareMembers(all, object[key], path+"[]")...)
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		forms, _ := object[key].([]any)
		for i, form := range forms {
			out = append(out, bareMembers(all, form, fmt.Sprintf("%s, form %d", path, i+1))...)
		}
	}
	return out
}
