package post

import (
	"embed"
	"encoding/json"
	"path"
	"strings"

	"crier/platform/fault"
)

// exampleFiles holds an Example for each operation, in the file <operation id>.json.
//
//go:embed examples/*.json
var exampleFiles embed.FS

// Example is a call to an operation of the public API, together with its response, as shown in the
// documentation. A test in tests/contract makes every example call, with real ids in place of the
// example ids, and compares the responses.
type Example struct {
	// Parameters maps the names of path, query and header parameters to their values.
	Parameters map[string]json.RawMessage `json:"parameters"`
	// Body is the request's JSON, or empty if the request has no body or sends a form.
	Body json.RawMessage `json:"body"`
	// Answer is the JSON body of the successful response.
	Answer json.RawMessage `json:"answer"`
}

// Examples returns the examples by operation id. If the examples cannot be read, it returns
// Internal.
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
