package post

import (
	"embed"
	"encoding/json"
	"path"
	"strings"

	"crier/platform/fault"
)

// exampleFiles has one file for each operation, <operation id>.json, with an Example.
//
//go:embed examples/*.json
var exampleFiles embed.FS

// Example is one call of an operation of the public API and its answer, as the documentation shows them. A test of
// tests/contract makes the calls of all examples, with the ids of real things in place of those of the example, and
// compares the answers.
type Example struct {
	// Parameters has values of the path, of the query and of headers by the name of the parameter.
	Parameters map[string]json.RawMessage `json:"parameters"`
	// Body is the JSON of the request, empty if it has none or is a form.
	Body json.RawMessage `json:"body"`
	// Answer is the JSON of the answer with the status of success.
	Answer json.RawMessage `json:"answer"`
}

// Examples returns the examples by the id of their operation. Its error is Internal.
func Examples() (map[string]Example, error) {
	const op = "post.Examples"
	entries, err := exampleFiles.ReadDir("examples")
	if err != nil {
		return nil, fault.Wrap(fault.Internal, op, "", err)
	}
	out := map[string]Example{}
	for _, e := range entries {
		raw, err := exampleFiles.ReadFile(path.Join("examples", e.Name()))
		if err != nil {
			return nil, fault.Wrap(fault.Internal, op, "", err)
		}
		var x Example
		if err := json.Unmarshal(raw, &x); err != nil {
			return nil, fault.Wrap(fault.Internal, op, e.Name(), err)
		}
		out[strings.TrimSuffix(e.Name(), ".json")] = x
	}
	return out, nil
}
