package post

import (
	"embed"
	"encoding/json"
	"path"
	"strings"

	"crier/platform/fault"
)

// exampleFiles has one file with an Example for each operation, <operation id>.json.
//
//go:embed examples/*.json
var exampleFiles embed.FS

// Example is one call of an operation of the public API and its response, as the documentation
// shows them. A test in tests/contract makes the calls of all examples, with real ids in place of
// the example ids, and compares the responses.
type Example struct {
	// Parameters has the values of path, query and header parameters by name.
	Parameters map[string]json.RawMessage `json:"parameters"`
	// Body is the JSON of the request, or empty if the request has no body or sends a form.
	Body json.RawMessage `json:"body"`
	// Answer is the JSON of the successful response.
	Answer json.RawMessage `json:"answer"`
}

// Examples returns the examples by operation id. The error is always Internal.
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
