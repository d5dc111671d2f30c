// Package generated generates clients from an OpenAPI document with openapi-typescript, orval and
// oapi-codegen, compiles them and makes calls with them, for tests.
package generated

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"crier/tests/npm"
)

//go:embed package.json package-lock.json run.mjs calls.mjs
var scripts embed.FS

// The module of the oapi-codegen client, with the version of the generator.
var (
	//go:embed client.mod
	module []byte
	//go:embed client.sum
	sums []byte
	//go:embed testdata/client/main.go
	caller []byte
)

// runTime allows for the slowest program, which first compiles the generator of the Go client.
const runTime = 15 * time.Minute

// TypeScript lists the names of the TypeScript clients.
var TypeScript = []string{"openapi-typescript", "orval"}

// Go is the name of the Go client.
const Go = "oapi-codegen"

// Call is a call to an operation.
type Call struct {
	// ID is the operation id.
	ID string `json:"id"`
	// Method and Path are written as in the document: the path contains the names of its
	// parameters.
	Method string `json:"method"`
	Path   string `json:"path"`
	// Status is the expected status of the response.
	Status     int         `json:"status"`
	Parameters []Parameter `json:"parameters,omitempty"`
	// Body is the JSON body and File a picture to upload. At most one of them is set.
	Body json.RawMessage `json:"body,omitempty"`
	File []byte          `json:"file,omitempty"`
	// Key replaces the Client's key.
	Key string `json:"key,omitempty"`
}

// Parameter is the value of a path, query or header parameter.
type Parameter struct {
	Name  string `json:"name"`
	In    string `json:"in"`
	Value any    `json:"value"`
}

// Client is the API key of a client and the calls that it makes.
type Client struct {
	Key   string `json:"key"`
	Calls []Call `json:"calls"`
}

// Problems generates each client from the document and makes the client's calls to the service at
// the address. It needs npm, Go and their registries.
//
// It returns what is wrong, keyed by client: code that does not compile, a response with another
// status, and a response that the client does not accept.
//
// In TypeScript, a call is compiled with its literal inputs, and each response as a literal of the
// client's type for it. orval's zod schemas, with closed objects, check the response too. In Go,
// inputs and responses are decoded without unknown members, and a response must be the same after
// it is encoded again.
func Problems(t testing.TB, address string, document []byte, clients map[string]Client) map[string][]string {
	t.Helper()
	var out map[string][]string
	npm.Run(t, scripts, "run.mjs", runTime, map[string]any{
		"url": address, "document": json.RawMessage(document), "clients": clients,
	}, &out)
	out[Go] = goProblems(t, address, document, clients[Go])
	return out
}

func goProblems(t testing.TB, address string, document []byte, c Client) (problems []string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string][]byte{
		"go.mod": module, "go.sum": sums, "main.go": caller, "document.json": document,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "api"), 0o755); err != nil {
		t.Fatal(err)
	}
	run(
		t, dir, nil, "tool", "oapi-codegen",
		"-package", "api", "-generate", "types,client", "-o", "api/api.go", "document.json",
	)
	input, err := json.Marshal(map[string]any{"url": address, "key": c.Key, "calls": c.Calls})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(run(t, dir, input, "run", "."), &problems); err != nil {
		t.Fatal(err)
	}
	return problems
}

// run runs the go command and returns its output.
func run(t testing.TB, dir string, input []byte, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdin, cmd.WaitDelay = dir, bytes.NewReader(input), 5*time.Second
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", args[0], err, wrong.Bytes())
	}
	return out
}
