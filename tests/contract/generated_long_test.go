//go:build long

package contract

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"crier/tests/generated"
)

// generatedCall returns the example call for a generated client.
func (op documented) generatedCall(t *testing.T, w exampleWorld) generated.Call {
	t.Helper()
	status, _ := op.success()
	c := generated.Call{ID: op.ID, Method: op.method, Path: op.path, Status: status}
	for _, p := range op.Parameters {
		if len(p.Example) > 0 {
			value := decode[any](t, json.RawMessage(w.replace(string(p.Example))))
			c.Parameters = append(c.Parameters, generated.Parameter{Name: p.Name, In: p.In, Value: value})
		}
	}
	if op.Body == nil {
		return c
	}
	if _, form := op.Body.Content["multipart/form-data"]; form {
		c.File = png(t)
	} else if body := op.Body.Content["application/json"].Example; body != nil {
		c.Body = json.RawMessage(w.replace(text(body)))
	}
	return c
}

// refusals returns calls that are refused: with a sentence, with a list of faults, for a channel,
// and for a wrong key.
func refusals() []generated.Call {
	unknown := []generated.Parameter{{Name: "id", In: "path", Value: "x"}}
	tag := json.RawMessage(`{"name": "", "color": "red"}`)
	post := json.RawMessage(`{"type": "schedule", "date": "2040-03-01T09:30:00Z", "posts": [{"integration": {"id": "x"}, "value": [{"content": "Hello"}]}]}`)
	return []generated.Call{
		{ID: "get-post", Method: "GET", Path: "/public/v1/posts/{id}", Status: http.StatusNotFound, Parameters: unknown},
		{ID: "create-tag", Method: "POST", Path: "/public/v1/tags", Status: http.StatusBadRequest, Body: tag},
		{ID: "create-posts", Method: "POST", Path: "/public/v1/posts", Status: http.StatusBadRequest, Body: post},
		{ID: "is-connected", Method: "GET", Path: "/public/v1/is-connected", Status: http.StatusUnauthorized, Key: "none"},
	}
}

// TestGenerated_ClientsAcceptEveryAnswer generates three clients from the document of the public
// API, and makes the example call of every operation with each of them, in a separate organization
// per client.
func TestGenerated_ClientsAcceptEveryAnswer(t *testing.T) {
	t.Parallel()
	r, receiver := startExamples(t)
	_, all := publicOperations(t, r)
	served := org{rig: r}.get(t, "/public/v1/openapi.json").want(t, http.StatusOK)
	clients := map[string]generated.Client{}
	for _, name := range append(slices.Clone(generated.TypeScript), generated.Go) {
		w := r.exampleWorld(t, receiver)
		c := generated.Client{Key: w.key, Calls: refusals()}
		for _, op := range all {
			if strings.HasPrefix(op.path, "/public/v1/") {
				c.Calls = append(c.Calls, op.generatedCall(t, w))
			}
		}
		wantEveryOperation(t, served, c.Calls)
		clients[name] = c
	}
	for name, problems := range generated.Problems(t, "http://"+r.app.Addr(), served.raw(), clients) {
		for _, problem := range problems {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// wantEveryOperation fails the test for each operation in a document that has no successful call.
func wantEveryOperation(t *testing.T, document answer, calls []generated.Call) {
	t.Helper()
	doc := read[struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		} `json:"paths"`
	}](t, document)
	for path, methods := range doc.Paths {
		for method, op := range methods {
			called := func(c generated.Call) bool { return c.ID == op.ID && c.Status < http.StatusMultipleChoices }
			if !slices.ContainsFunc(calls, called) {
				t.Errorf("%s %s has no call", strings.ToUpper(method), path)
			}
		}
	}
}
