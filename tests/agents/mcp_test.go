package agents

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/tests/call"
)

// toolNames are the sixteen tools, sorted.
var toolNames = []string{
	"service_change_post_status", "service_create_post", "service_delete_post", "service_find_slot",
	"service_get_approval_status", "service_get_channel_analytics", "service_get_channel_schema", "service_get_overview",
	"service_get_post", "service_list_channels", "service_list_groups", "service_list_posts", "service_request_approval",
	"service_trigger_channel_tool", "service_update_post_settings", "service_upload_from_url",
}

const (
	oldRevision = "2025-11-25"
	newRevision = "2026-07-28"
)

// agent is a program with a token that speaks the protocol without a library.
type agent struct {
	base, token string
}

// send sends a JSON-RPC message, or any other body. Headers override those of the protocol.
func (a agent) send(t testing.TB, body any, headers ...string) call.Answer {
	t.Helper()
	all := []string{"Accept", "application/json, text/event-stream", "MCP-Protocol-Version", oldRevision, "X-Forwarded-For", "203.0.113.8"}
	if a.token != "" {
		all = append(all, "Authorization", "Bearer "+a.token)
	}
	answer, err := call.Do(t.Context(), browserless(), http.MethodPost, a.base+"/mcp", body, append(all, headers...)...)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// rpc calls a method.
func (a agent) rpc(t testing.TB, method string, params m, headers ...string) call.Answer {
	t.Helper()
	return a.send(t, m{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers...)
}

// rpcError is the error of a JSON-RPC answer.
type rpcError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// tool is a definition in tools/list.
type tool struct {
	Name, Title, Description string
	InputSchema              map[string]any
	OutputSchema             map[string]any
	Annotations              *struct {
		ReadOnlyHint, IdempotentHint, OpenWorldHint bool
		DestructiveHint                             *bool
	}
	raw json.RawMessage
}

// tools returns tools/list, in the order of the answer.
func (a agent) tools(t testing.TB) (out []tool) {
	t.Helper()
	var answer struct {
		Result struct{ Tools []json.RawMessage }
		Error  *rpcError
	}
	got := a.rpc(t, "tools/list", m{})
	if err := got.Into(&answer); err != nil || answer.Error != nil {
		t.Fatalf("tools/list: got %v, want the tools", got)
	}
	for _, raw := range answer.Result.Tools {
		x := tool{raw: raw}
		decode(t, string(raw), &x)
		out = append(out, x)
	}
	return out
}

// result is the result of a tool.
type result struct {
	IsError           bool
	StructuredContent json.RawMessage
	Content           []struct{ Type, Text string }

	answer call.Answer
}

// call calls a tool. It fails the test unless the answer is a result of the tool.
func (a agent) call(t testing.TB, name string, arguments m) result {
	t.Helper()
	r, ok := a.try(t, name, arguments)
	if !ok {
		t.Fatalf("%s %v: got %v, want the result of a tool", name, arguments, r.answer)
	}
	return r
}

// try is like call but also returns answers that are not results of the tool, with false.
func (a agent) try(t testing.TB, name string, arguments m) (result, bool) {
	t.Helper()
	var out struct{ Result *result }
	answer := a.rpc(t, "tools/call", m{"name": name, "arguments": arguments})
	if answer.Status != http.StatusOK || json.Unmarshal([]byte(answer.Body), &out) != nil || out.Result == nil {
		return result{answer: answer}, false
	}
	out.Result.answer = answer
	return *out.Result, true
}

// must is like call but requires a success. It decodes the output into out, unless out is nil.
func (a agent) must(t testing.TB, out any, name string, arguments m) {
	t.Helper()
	r := a.call(t, name, arguments)
	if r.IsError {
		t.Fatalf("%s %v: got %v, want a success", name, arguments, r.answer)
	}
	if out == nil {
		return
	}
	var wrapped struct{ Output json.RawMessage }
	decode(t, r.text(), &wrapped)
	decode(t, string(wrapped.Output), out)
}

func (r result) text() string {
	var out strings.Builder
	for _, c := range r.Content {
		out.WriteString(c.Text)
	}
	return out.String()
}

// mistake is the output of a tool that failed.
type mistake struct {
	Errors, Code, Field string
	Allowed             []any
	Next                *struct {
		Tool      string
		Arguments m
	}
}

// mistake decodes the text of an error. It fails the test if the text does not have the form of
// an error.
func (r result) mistake(t testing.TB) (out mistake) {
	t.Helper()
	var wrapped struct{ Output json.RawMessage }
	decode(t, r.text(), &wrapped)
	decode(t, string(wrapped.Output), &out)
	if !r.IsError || out.Errors == "" || len(r.StructuredContent) > 0 && string(r.StructuredContent) != "null" {
		t.Fatalf("got %v, want an error with output.errors and no structuredContent", r.answer)
	}
	return out
}

// toolCall is a call and whether the tool must refuse it.
type toolCall struct {
	Tool      string `json:"tool"`
	Arguments m      `json:"arguments"`
	Fails     bool   `json:"fails"`
}

// postEntry is an entry of socialPost.
func postEntry(kind, date, channel, text string) m {
	return m{
		"integrationId": channel, "date": date, "type": kind,
		"postsAndComments": []m{{"content": text, "attachments": []string{}}}, "settings": []m{},
	}
}

// toolCalls returns calls with good and bad input for every tool. It creates the posts that they
// need.
func toolCalls(t testing.TB, p *person, c channel) []toolCall {
	t.Helper()
	r := rest{base: p.s.base, credential: p.key(t)}
	draft := func() string { return r.create(t, "draft", tomorrow(), c.id, unique("draft ")) }
	changed, queued, deleted, asked := draft(), draft(), draft(), draft()
	const nobody = "00000000-0000-4000-8000-000000000000"
	week := m{"startDate": in(0), "endDate": in(7 * 24 * 60 * 60 * 1e9)}
	good := func(tool string, arguments m) toolCall { return toolCall{Tool: tool, Arguments: arguments} }
	bad := func(tool string, arguments m) toolCall {
		return toolCall{Tool: tool, Arguments: arguments, Fails: true}
	}
	with := func(arguments m, name string, value any) m {
		out := maps.Clone(arguments)
		out[name] = value
		return out
	}
	entry := postEntry("draft", tomorrow(), c.id, unique("made "))
	create := func(entries ...m) m { return m{"socialPost": entries} }
	return []toolCall{
		good("service_list_channels", m{}), good("service_list_channels", m{"group": nil}),
		bad("service_list_channels", m{"colour": "red"}),
		good("service_list_groups", m{}), bad("service_list_groups", m{"name": "x"}),
		good("service_get_channel_schema", m{"platform": "sandbox"}), good("service_get_channel_schema", m{"integrationId": c.id}),
		bad("service_get_channel_schema", m{}), bad("service_get_channel_schema", m{"platform": "nowhere"}),
		bad("service_get_channel_schema", m{"integrationId": nobody}),
		// The sandbox has no tools of its own, so every call is refused.
		bad("service_trigger_channel_tool", m{"integrationId": c.id, "methodName": "nothing", "dataSchema": []m{}}),
		bad("service_trigger_channel_tool", m{"methodName": "nothing"}),
		good("service_create_post", create(entry)),
		good("service_create_post", m{"socialPost": []m{postEntry("draft", tomorrow(), c.id, unique("keyed "))}, "idempotencyKey": unique("key-")}),
		good("service_create_post", with(create(postEntry("schedule", tomorrow(), c.id, unique("dry "))), "dryRun", true)),
		bad("service_create_post", create()), bad("service_create_post", create(with(entry, "integrationId", nobody))),
		bad("service_create_post", create(postEntry("schedule", "2030-01-01T10:00:00", c.id, "No offset."))),
		bad("service_create_post", create(postEntry("schedule", "2020-01-01T10:00:00Z", c.id, "In the past."))),
		bad("service_create_post", create(postEntry("schedule", tomorrow(), c.id, strings.Repeat("long ", 200)))),
		bad("service_create_post", create(with(entry, "type", "publish"))),
		good("service_list_posts", week), bad("service_list_posts", m{"startDate": "yesterday", "endDate": "today"}), bad("service_list_posts", with(week, "state", "x")),
		good("service_get_post", m{"id": changed}), bad("service_get_post", m{"id": nobody}), bad("service_get_post", m{}),
		good("service_update_post_settings", m{"id": changed, "settings": []m{}}),
		good("service_update_post_settings", m{
			"id": changed, "settings": []m{}, "date": in(48 * 60 * 60 * 1e9),
			"postsAndComments": []m{{"content": unique("changed "), "attachments": []string{}}},
		}),
		bad("service_update_post_settings", m{"id": nobody, "settings": []m{}}), bad("service_update_post_settings", m{"id": changed, "date": "soon"}),
		good("service_change_post_status", m{"id": queued, "status": "schedule"}),
		bad("service_change_post_status", m{"id": queued, "status": "published"}), bad("service_change_post_status", m{"id": nobody, "status": "draft"}),
		bad("service_delete_post", m{"id": deleted}), bad("service_delete_post", m{"id": deleted, "confirm": false}),
		good("service_delete_post", m{"id": deleted, "confirm": true}), bad("service_delete_post", m{"id": nobody, "confirm": true}),
		good("service_upload_from_url", m{"url": p.s.pictureURL()}), good("service_upload_from_url", m{}),
		bad("service_upload_from_url", m{"url": "http://169.254.169.254/latest/meta-data"}), bad("service_upload_from_url", m{"url": "file:///etc/passwd"}),
		good("service_find_slot", m{"integrationId": c.id}), bad("service_find_slot", m{"integrationId": nobody}),
		good("service_get_channel_analytics", m{"integrationId": c.id, "days": "7"}), bad("service_get_channel_analytics", m{"integrationId": nobody}),
		good("service_get_overview", m{"days": 7}), bad("service_get_overview", m{"days": -1}),
		good("service_request_approval", m{"id": asked, "note": "Please."}), bad("service_request_approval", m{"id": nobody}),
		bad("service_request_approval", m{"id": asked}), // there is a request already
		good("service_get_approval_status", m{"id": asked}), good("service_get_approval_status", m{"id": changed}),
		bad("service_get_approval_status", m{"id": nobody}),
	}
}

// checkNames fails the test unless the tools are the sixteen.
func checkNames(t testing.TB, tools []tool) {
	t.Helper()
	var names []string
	for _, x := range tools {
		names = append(names, x.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, toolNames) {
		t.Errorf("tools/list: got %v, want %v", names, toolNames)
	}
}

// checkRefusedSoon fails the test unless the process at base refuses the token within a second.
func checkRefusedSoon(t testing.TB, base, token string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		a := rest{base: base, credential: token}.ask(t, http.MethodGet, "/is-connected", nil)
		if a.Status == http.StatusUnauthorized {
			return
		}
		if time.Since(began) > time.Second {
			t.Errorf("%s takes the token a second after its end: got %v", base, a)
			return
		}
	}
}
