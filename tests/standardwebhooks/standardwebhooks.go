// Package standardwebhooks checks the signatures of webhooks with the library that receivers use, the npm package
// standardwebhooks.
package standardwebhooks

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

//go:embed package.json package-lock.json verify.cjs
var files embed.FS

// Call is a delivery as a receiver got it, and what it knows.
type Call struct {
	Secret  string
	Headers map[string]string
	Body    string
	// At is the receiver's time.
	At time.Time
}

// Verify returns for each call "" or why the library refuses it. It installs the library, which needs npm and its
// registry, and ends the test when that fails.
func Verify(t testing.TB, calls ...Call) []string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "verify.cjs"} {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	type input struct {
		Secret  string            `json:"secret"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
		At      int64             `json:"at"`
	}
	list := make([]input, len(calls))
	for i, c := range calls {
		list[i] = input{Secret: c.Secret, Headers: c.Headers, Body: c.Body, At: c.At.UnixMilli()}
	}
	raw, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	if err := json.Unmarshal(run(t, dir, raw, "node", "verify.cjs"), &out); err != nil || len(out) != len(calls) {
		t.Fatalf("got %d answers, %v, want %d", len(out), err, len(calls))
	}
	return out
}

// installTime is generous for a slow registry.
const installTime = 3 * time.Minute

func run(t testing.TB, dir string, input []byte, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), installTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdin, cmd.WaitDelay = dir, bytes.NewReader(input), 5*time.Second
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(fmt.Errorf("%s %s: %w\n%s%s", name, args[0], err, out, wrong.Bytes()))
	}
	return out
}
