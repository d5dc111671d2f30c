// Package standardwebhooks checks the signatures of webhooks with the library that receivers use:
// the npm package standardwebhooks.
package standardwebhooks

import (
	"embed"
	"testing"
	"time"

	"crier/tests/npm"
)

//go:embed package.json package-lock.json verify.cjs
var files embed.FS

// Call is a delivery as a receiver got it, with what the receiver knows.
type Call struct {
	Secret  string
	Headers map[string]string
	Body    string
	// At is the time on the receiver's clock.
	At time.Time
}

// Verify returns, for each call, why the library refuses it, or "". It installs the library, which
// needs npm and its registry, and ends the test if that fails.
func Verify(t testing.TB, calls ...Call) []string {
	t.Helper()
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
	var out []string
	npm.Run(t, files, "verify.cjs", installTime, list, &out)
	if len(out) != len(calls) {
		t.Fatalf("got %d answers, want %d", len(out), len(calls))
	}
	return out
}

// installTime is generous because the registry may be slow.
const installTime = 3 * time.Minute
