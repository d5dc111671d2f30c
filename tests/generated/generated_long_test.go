//go:build long

package generated_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"crier/tests/generated"
)

// TestProblems_FindsUndocumentedAnswers checks that each client refuses a body that its document
// does not describe.
func TestProblems_FindsUndocumentedAnswers(t *testing.T) {
	t.Parallel()
	thing := `{"type": "object", "required": ["name", "kind"], "properties": {"name": {"type": "string"}, "kind": {"type": "string", "enum": ["small"]}}}`
	figures := `{"type": "object", "required": ["date"], "properties": {"date": {"type": "string"}}, "additionalProperties": {"type": "number", "format": "double"}}`
	all := map[string]struct{ schema, body string }{
		"get-good":    {thing, `{"name": "splendid", "kind": "small"}`},
		"get-unknown": {thing, `{"name": "x", "kind": "small", "extra": 1}`},
		"get-other":   {thing, `{"name": "x", "kind": "gigantic"}`},
		"get-less":    {thing, `{"kind": "small"}`},
		"get-refused": {thing, `{"name": "x", "kind": "small"}`},
		"get-figures": {figures, `{"date": "2027-03-01", "likes": 3}`},
	}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := strings.TrimPrefix(r.URL.Path, "/")
		w.Header().Set("Content-Type", "application/json")
		if id == "get-refused" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, all[id].body)
	}))
	t.Cleanup(service.Close)

	var paths []string
	var c generated.Client
	for id, one := range all {
		paths = append(paths, fmt.Sprintf(`"/%s": {"get": {"operationId": %q, "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": %s}}}}}}`, id, id, one.schema))
		c.Calls = append(c.Calls, generated.Call{ID: id, Method: "GET", Path: "/" + id, Status: http.StatusOK})
	}
	slices.SortFunc(c.Calls, func(a, b generated.Call) int { return strings.Compare(a.ID, b.ID) })
	document := json.RawMessage(`{"openapi": "3.1.0", "info": {"title": "Test", "version": "1"}, "paths": {` + strings.Join(paths, ", ") + `}}`)
	clients := map[string]generated.Client{generated.Go: c}
	for _, name := range generated.TypeScript {
		clients[name] = c
	}

	found := generated.Problems(t, service.URL, document, clients)
	for name := range clients {
		text := strings.Join(found[name], "\n")
		for what, sign := range map[string]string{
			"the unknown member": "extra", "the unknown value": "gigantic", "the missing member": "name", "the other status": "404",
		} {
			if !strings.Contains(text, sign) {
				t.Errorf("%s has not found %s:\n%s", name, what, text)
			}
		}
		if strings.Contains(text, "splendid") {
			t.Errorf("%s has refused the good answer:\n%s", name, text)
		}
		if slices.Contains(generated.TypeScript, name) && !strings.Contains(text, "date") {
			t.Errorf("%s has accepted figures of any name:\n%s", name, text)
		}
	}
}
