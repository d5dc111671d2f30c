package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"crier/apps/edge"
	"crier/apps/edge/oauth"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tests/edgetest"
)

// The access tokens of an agent that may write, of one whose client never asked to, and of one
// whose person declined it.
const (
	writer   = "cra_writer"
	reader   = "cra_reader"
	declined = "cra_declined"
	mustAsk  = "cra_must_ask"
	removed  = "cra_removed"
)

// tokens is the port for access tokens.
type tokens struct{ oauth.Grants }

func (tokens) Authenticate(_ context.Context, token string) (tenancy.Principal, error) {
	p := tenancy.Principal{
		Org: edgetest.OrgID, Person: edgetest.PersonID, Role: tenancy.RoleAdmin, Via: tenancy.ViaAgent, Name: edgetest.Ada,
		Agent: tenancy.Agent{ID: id.New[tenancy.AgentTag](), Grant: id.New[tenancy.GrantTag](), Name: "Robot"},
	}
	switch token {
	case writer:
		p.Agent.Write = true
	case reader:
	case declined:
		p.Agent.WriteDeclined = true
	case mustAsk:
		p.Agent.Write, p.Agent.Limits = true, &tenancy.AgentLimits{MustAsk: true}
	case removed:
		return tenancy.Principal{}, fault.New(fault.Forbidden, "fake", "The person is no longer a member.")
	default:
		return tenancy.Principal{}, fault.New(fault.Unauthenticated, "fake", "The access token is not valid.")
	}
	return p, nil
}

// service is an edge with its MCP endpoint.
type service struct{ *edgetest.Service }

// serve serves an edge. Each change may replace its ports.
func serve(t *testing.T, vars map[string]string, change ...func(*edge.Deps)) service {
	t.Helper()
	return service{edgetest.New(t, vars, append([]func(*edge.Deps){func(d *edge.Deps) { d.OAuth.Grants = tokens{} }}, change...)...)}
}

// post sends a body with a credential, which may be empty.
func (s service) post(t *testing.T, credential, body string, headers ...string) edgetest.Answer {
	t.Helper()
	all := []string{"Content-Type", "application/json"}
	if credential != "" {
		all = append(all, "Authorization", "Bearer "+credential)
	}
	return s.Call(t, "POST", "/mcp", body, append(all, headers...)...)
}

// request returns a JSON-RPC request.
func request(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params)
}

// ask sends a request and returns its result.
func (s service) ask(t *testing.T, credential, method, params string) map[string]any {
	t.Helper()
	a := s.post(t, credential, request(method, params))
	edgetest.Want(t, a, 200)
	out := edgetest.Decode[struct {
		ID     int
		Result map[string]any
		Error  any
	}](t, a)
	if out.ID != 7 || out.Error != nil {
		t.Fatalf("answered %s, want a result of the request 7", a.Body)
	}
	return out.Result
}

// result is the result of a tool.
type result struct {
	IsError    bool
	Text       string
	Structured map[string]any
	Body       string
	// Failure is set if IsError is.
	Failure failure
}

// failure is the output of a failed call.
type failure struct {
	Errors, Code, Field string
	Allowed             []any
	RetryAfter          int
	Next                *struct {
		Tool      string
		Arguments map[string]any
	}
}

// use calls a tool with an API key and returns its result. It checks that the text and the
// structured content agree, and that the answer fits the tool's schema and the limit on size.
func (s service) use(t *testing.T, tool, args string) result {
	t.Helper()
	return s.useAs(t, edgetest.APIKey, tool, args)
}

func (s service) useAs(t *testing.T, credential, tool, args string) result {
	t.Helper()
	a := s.post(t, credential, request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args)))
	edgetest.Want(t, a, 200)
	sent := edgetest.Decode[struct {
		Result struct {
			IsError           bool
			Content           []struct{ Type, Text string }
			StructuredContent map[string]any
		}
	}](t, a).Result
	if len(sent.Content) != 1 || sent.Content[0].Type != "text" {
		t.Fatalf("%s: answered %s, want one text", tool, a.Body)
	}
	if len(a.Body) > 25_000+200 {
		t.Errorf("%s: the answer has %d bytes, want at most 25 kB", tool, len(a.Body))
	}
	out := result{IsError: sent.IsError, Text: sent.Content[0].Text, Structured: sent.StructuredContent, Body: a.Body}
	if out.IsError {
		var words struct{ Output failure }
		if err := json.Unmarshal([]byte(out.Text), &words); err != nil || out.Structured != nil {
			t.Fatalf("%s: answered %s, want an error without structured content (%v)", tool, a.Body, err)
		}
		if words.Output.Errors == "" || words.Output.Code == "" {
			t.Errorf("%s: answered %s, want errors and a code", tool, out.Text)
		}
		out.Failure = words.Output
		return out
	}
	var text map[string]any
	if err := json.Unmarshal([]byte(out.Text), &text); err != nil || fmt.Sprint(text) != fmt.Sprint(out.Structured) {
		t.Errorf("%s: the text %s differs from the structured content %v", tool, out.Text, out.Structured)
	}
	if err := s.outputSchema(t, tool).Validate(map[string]any(out.Structured)); err != nil {
		t.Errorf("%s: %s does not fit the output schema: %v", tool, out.Text, err)
	}
	return out
}

// wantFailure fails the test unless the call failed with a code and a field.
func (r result) wantFailure(t *testing.T, code, field string, words ...string) {
	t.Helper()
	if !r.IsError || r.Failure.Code != code || r.Failure.Field != field {
		t.Errorf("got %s, want an error with the code %q and the field %q", r.Text, code, field)
	}
	for _, w := range words {
		if !strings.Contains(r.Text, w) {
			t.Errorf("got %s, want it to contain %q", r.Text, w)
		}
	}
}

// want fails the test unless the call succeeded and its text contains every part.
func (r result) want(t *testing.T, parts ...string) {
	t.Helper()
	if r.IsError {
		t.Fatalf("got the error %s, want a result", r.Text)
	}
	for _, p := range parts {
		if !strings.Contains(r.Text, p) {
			t.Errorf("got %s, want it to contain %q", r.Text, p)
		}
	}
}

// definitions returns the tools by name.
func (s service) definitions(t *testing.T) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, d := range s.ask(t, edgetest.APIKey, "tools/list", `{}`)["tools"].([]any) {
		one := d.(map[string]any)
		out[one["name"].(string)] = one
	}
	return out
}

// outputSchema returns the compiled schema of a tool's answers. Answers may not have members that
// the schema does not describe.
func (s service) outputSchema(t *testing.T, tool string) *jsonschema.Schema {
	t.Helper()
	schema := s.definitions(t)[tool]["outputSchema"]
	closeObjects(schema)
	raw, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("tool.json", doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("tool.json")
}

// closeObjects forbids other members in each object of a schema that lists its members.
func closeObjects(schema any) {
	of, ok := schema.(map[string]any)
	if !ok {
		return
	}
	if p, ok := of["properties"].(map[string]any); ok {
		of["additionalProperties"] = false
		for v := range maps.Values(p) {
			closeObjects(v)
		}
	}
	closeObjects(of["items"])
}

// ahead returns a date in the future.
func ahead(after time.Duration) string {
	return time.Now().Add(after).UTC().Truncate(time.Second).Format(time.RFC3339)
}
