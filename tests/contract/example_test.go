package contract

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"crier/apps/edge"
	postapi "crier/apps/edge/api/post"
	"crier/apps/edge/docs"
)

var updateExamples = flag.Bool("update-examples", false, "write the answers of the service to examples without one")

// documented is an operation in the document, with its examples.
type documented struct {
	operation
	ID         string `json:"operationId"`
	Summary    string `json:"summary"`
	Parameters []struct {
		Name    string          `json:"name"`
		In      string          `json:"in"`
		Example json.RawMessage `json:"example"`
	} `json:"parameters"`
	Body *struct {
		Content map[string]content `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]content `json:"content"`
	} `json:"responses"`
}

type content struct {
	Schema  *schema `json:"schema"`
	Example any     `json:"example"`
}

// publicOperations returns the operations of the public API in an order in which one organization
// can run all of them: deletions come last. The alias mount is left out, except its own form of the
// list of posts.
func publicOperations(t *testing.T, r *rig) (document, []documented) {
	t.Helper()
	raw := org{rig: r}.get(t, "/openapi.json").want(t, http.StatusOK)
	doc := read[struct {
		Paths map[string]map[string]documented `json:"paths"`
	}](t, raw)
	var all []documented
	for path, methods := range doc.Paths {
		for method, op := range methods {
			op.method, op.path = strings.ToUpper(method), path
			if strings.HasPrefix(path, "/public/v1/") && path != docs.PublicDocumentPath || op.ID == "list-posts-alias" {
				all = append(all, op)
			}
		}
	}
	slices.SortFunc(all, func(a, b documented) int { return strings.Compare(a.order(), b.order()) })
	return read[document](t, raw), all
}

// order sorts reads before changes, and changes before deletions. Deleting a post also ends its
// approval.
func (op documented) order() string {
	rank := slices.Index([]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}, op.method)
	return strconv.Itoa(rank) + op.ID
}

// success returns the status and the JSON content of a success.
func (op documented) success() (status int, json content) {
	for name, r := range op.Responses {
		if code, err := strconv.Atoi(name); err == nil && code < 300 {
			return code, r.Content["application/json"]
		}
	}
	return 0, content{}
}

// inputs returns the example's inputs, with the organization's ids.
func (op documented) inputs(t *testing.T, w exampleWorld) inputs {
	t.Helper()
	in := inputs{}
	for _, p := range op.Parameters {
		if len(p.Example) > 0 {
			in[p.In+" "+p.Name] = w.replace(strings.Trim(string(p.Example), `"`))
		}
	}
	if op.Body == nil {
		return in
	}
	if _, form := op.Body.Content["multipart/form-data"]; form {
		in["file file"] = png(t)
		return in
	}
	body := op.Body.Content["application/json"].Example
	maps.Copy(in, decode[m](t, json.RawMessage(w.replace(text(body)))))
	return in
}

// call makes the example call.
func (op documented) call(t *testing.T, w exampleWorld) answer {
	t.Helper()
	o := w.org
	path := op.path
	if rest, ok := strings.CutPrefix(path, "/api"); ok {
		o.prefix, path = "/api/public/v1", rest
	}
	path = regexp.MustCompile(`\{(\w+)\}`).ReplaceAllString(strings.TrimPrefix(path, "/public/v1"), ":$1")
	return op.inputs(t, w).request(t, o, op.method, path)
}

// TestExamples_AreTrue makes the call of each example in the OpenAPI document. The response must
// have the status and the members of the example, and both must be valid against the schema.
func TestExamples_AreTrue(t *testing.T) {
	t.Parallel()
	r, receiver := startExamples(t)
	d, all := publicOperations(t, r)
	w := r.exampleWorld(t, receiver)
	for _, op := range all {
		t.Run(op.ID, func(t *testing.T) {
			status, want := op.success()
			if op.Body != nil {
				if body := op.Body.Content["application/json"]; body.Schema != nil {
					wantValid(t, d, body.Schema, body.Example, "the body of the example")
				}
			}
			a := op.call(t, w).want(t, status)
			if *updateExamples && want.Example == nil {
				writeExample(t, op, w.restore(a.Body))
				return
			}
			wantValid(t, d, want.Schema, want.Example, "the answer of the example")
			got := read[any](t, a)
			wantValid(t, d, want.Schema, got, "the answer")
			c := comparison{enumerated: d.enumerated(want.Schema)}
			for _, difference := range c.differences(want.Example, got, "answer") {
				t.Errorf("%s: %s", op.ID, difference)
			}
		})
	}
}

func wantValid(t *testing.T, d document, s *schema, v any, what string) {
	t.Helper()
	if v == nil {
		t.Errorf("got no example, want %s", what)
	}
	for _, wrong := range d.violations(s, v, what) {
		t.Error(wrong)
	}
}

// writeExample writes the response to the file of the example.
func writeExample(t *testing.T, op documented, answer string) {
	t.Helper()
	name := "../../apps/edge/api/post/examples/" + op.ID + ".json"
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(strings.TrimSpace(answer)), "  ", "  "); err != nil {
		t.Fatal(err)
	}
	raw = bytes.Replace(raw, []byte(`"answer": null`), fmt.Appendf(nil, `"answer": %s`, out.Bytes()), 1)
	if err := os.WriteFile(name, raw, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestExamples_EveryPublicOperationHasOne checks that each built route has a file <operation
// id>.json.
func TestExamples_EveryPublicOperationHasOne(t *testing.T) {
	t.Parallel()
	examples, err := postapi.Examples()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range edge.Routes() {
		if r.State != edge.Built || !strings.HasPrefix(r.Path, "/public/v1/") || r.Path == docs.PublicDocumentPath {
			continue
		}
		x, ok := examples[r.Operation]
		if !ok || len(x.Answer) == 0 || string(x.Answer) == "null" {
			t.Errorf("%s has no example with an answer, want apps/edge/api/post/examples/%s.json", r, r.Operation)
		}
		for _, part := range strings.Split(r.Path, "/") {
			name := strings.Trim(part, "{}")
			if name != part && x.Parameters[name] == nil {
				t.Errorf("the example of %s has no value for %s", r, name)
			}
		}
	}
}
