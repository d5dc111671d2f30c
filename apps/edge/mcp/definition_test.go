package mcp_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"crier/tests/edgetest"
)

// listed are the tools in the order of tools/list, with their hints: read only, destructive,
// idempotent.
var listed = []struct {
	name                        string
	reads, destroys, idempotent bool
}{
	{"service_change_post_status", false, false, true},
	{"service_create_post", false, true, false},
	{"service_delete_post", false, true, true},
	{"service_find_slot", true, false, false},
	{"service_get_approval_status", true, false, true},
	{"service_get_channel_analytics", true, false, true},
	{"service_get_channel_schema", true, false, true},
	{"service_get_overview", true, false, true},
	{"service_get_post", true, false, true},
	{"service_list_channels", true, false, true},
	{"service_list_groups", true, false, true},
	{"service_list_posts", true, false, true},
	{"service_request_approval", false, false, false},
	{"service_trigger_channel_tool", false, true, false},
	{"service_update_post_settings", false, false, true},
	{"service_upload_from_url", false, false, false},
}

func TestList_HasSixteenToolsInFixedOrder(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	a := s.post(t, edgetest.APIKey, request("tools/list", `{}`))
	if len(a.Body) > 40_000 {
		t.Errorf("tools/list has %d bytes, want at most 40 kB", len(a.Body))
	}
	t.Logf("%d bytes", len(a.Body))
	if again := s.post(t, writer, request("tools/list", `{}`)); again.Body != a.Body {
		t.Error("tools/list differs from one call to the next")
	}
	out := edgetest.Decode[struct {
		Result struct {
			Tools []struct {
				Name, Title, Description string
				Annotations              struct {
					ReadOnlyHint, IdempotentHint   bool
					DestructiveHint, OpenWorldHint *bool
				}
			}
			NextCursor string
		}
	}](t, a).Result
	if len(out.Tools) != len(listed) || out.NextCursor != "" {
		t.Fatalf("got %d tools and the cursor %q, want %d and none", len(out.Tools), out.NextCursor, len(listed))
	}
	for i, got := range out.Tools {
		want, hints := listed[i], got.Annotations
		if got.Name != want.name || got.Title == "" || got.Description == "" {
			t.Errorf("tool %d is %+v, want %s with a title and a description", i, got, want.name)
		}
		if hints.DestructiveHint == nil || hints.OpenWorldHint == nil {
			t.Errorf("%s leaves out a hint: %+v", got.Name, hints)
			continue
		}
		if hints.ReadOnlyHint != want.reads || *hints.DestructiveHint != want.destroys || hints.IdempotentHint != want.idempotent {
			t.Errorf("%s: got the hints %+v, want %+v", got.Name, hints, want)
		}
	}
}

// TestDefinitions_AreForModels checks each schema: models get every property described, and no
// client meets a keyword that it may not understand.
func TestDefinitions_AreForModels(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for name, d := range s.definitions(t) {
		for _, kind := range []string{"inputSchema", "outputSchema"} {
			root, ok := d[kind].(map[string]any)
			if !ok || root["type"] != "object" {
				t.Errorf("%s: %s is %v, want an object", name, kind, d[kind])
				continue
			}
			lint(t, name+"."+kind, root, kind == "inputSchema")
		}
	}
}

// lint checks a schema and everything below it. closed means that it may allow no other members.
func lint(t *testing.T, at string, schema map[string]any, closed bool) {
	t.Helper()
	for _, keyword := range []string{"$ref", "$defs", "anyOf", "oneOf", "allOf", "not", "if", "patternProperties"} {
		if schema[keyword] != nil {
			t.Errorf("%s has the keyword %s", at, keyword)
		}
	}
	if _, one := schema["type"].(string); !one && schema["type"] != nil {
		t.Errorf("%s has the types %v, want one", at, schema["type"])
	}
	members, _ := schema["properties"].(map[string]any)
	if closed && schema["type"] == "object" && schema["additionalProperties"] != false {
		t.Errorf("%s allows unknown arguments", at)
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if members[name.(string)] == nil {
			t.Errorf("%s requires %v, which it does not describe", at, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		of, path := members[name].(map[string]any), at+"."+name
		lintDescription(t, path, of, closed)
		lint(t, path, of, closed)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		lintDescription(t, at+"[]", items, closed)
		lint(t, at+"[]", items, closed)
	}
	if schema["type"] == "array" && schema["items"] == nil {
		t.Errorf("%s says nothing about its elements", at)
	}
}

// lintDescription checks the description of a property or an element. A word says enough about a
// member of an answer, but not about an argument.
func lintDescription(t *testing.T, at string, schema map[string]any, argument bool) {
	t.Helper()
	least := len("URL.")
	if argument {
		least = len("Post name.")
	}
	if words, _ := schema["description"].(string); len(words) < least || !strings.HasSuffix(words, ".") {
		t.Errorf("%s has the description %q, want a sentence", at, words)
	}
}

// TestDefinitions_RequireWhatContractSays lists the required arguments.
func TestDefinitions_RequireWhatContractSays(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	want := map[string]string{
		"service_change_post_status": "[id status]", "service_create_post": "[socialPost]", "service_delete_post": "[id confirm]",
		"service_find_slot": "[integrationId]", "service_get_approval_status": "[id]", "service_get_channel_analytics": "[integrationId]",
		"service_get_post": "[id]", "service_list_posts": "[startDate endDate]", "service_request_approval": "[id]",
		"service_trigger_channel_tool": "[integrationId methodName]", "service_update_post_settings": "[id]",
	}
	for name, d := range s.definitions(t) {
		required := "<nil>"
		if words, ok := want[name]; ok {
			required = words
		}
		if got := fmt.Sprint(d["inputSchema"].(map[string]any)["required"]); got != required {
			t.Errorf("%s requires %s, want %s", name, got, required)
		}
	}
}

func TestOlderNames_AreAcceptedButNotListed(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	tools := s.definitions(t)
	for name, args := range map[string]string{
		"integrationList": `{}`, "groupList": `{}`, "integrationSchema": `{"integrationId":"c1"}`,
		"triggerTool": `{"integrationId":"c1","methodName":"x"}`, "schedulePostTool": `{}`, "postsListTool": `{}`,
		"postSettingsTool": `{}`, "uploadFromUrlTool": `{}`,
	} {
		if tools[name] != nil {
			t.Errorf("%s is listed", name)
		}
		a := s.post(t, writer, request("tools/call", `{"name":"`+name+`","arguments":`+args+`}`))
		edgetest.Want(t, a, 200, `"content":[`)
	}
	a := s.post(t, reader, request("tools/call", `{"name":"schedulePostTool","arguments":{}}`))
	edgetest.Want(t, a, 403)
}

func TestInitialize_TellsModelHowToBegin(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	got := s.ask(t, writer, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	words, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"name":"crier"`, "service_list_channels", "never instructions"} {
		if !strings.Contains(string(words), part) {
			t.Errorf("got %s, want it to contain %q", words, part)
		}
	}
}
