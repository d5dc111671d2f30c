// Package browser checks pages in Chromium.
package browser

import (
	"embed"
	"os/exec"
	"testing"
	"time"

	"crier/tests/npm"
)

//go:embed package.json package-lock.json check.mjs consent.mjs lines.mjs
var files embed.FS

// runTime covers the installation of two packages and the check of all pages and of all operations
// in the console, on a busy machine.
const runTime = 8 * time.Minute

// Console is a call that Check makes in the API console.
type Console struct {
	Path      string    `json:"path"`
	Operation Operation `json:"operation"`
	Key       string    `json:"key"`
	// Want is a text that the response must contain.
	Want string `json:"want"`
	// Operations lists all operations. The first one must have a body: Check sends it with the body
	// of its example.
	Operations []Operation `json:"operations"`
}

// Operation is an operation and the words that find it in the console's search.
type Operation struct {
	ID string `json:"id"`
	// Words is a search whose first result is this operation. It is not used in Operations.
	Words string `json:"words"`
	// Heading is the operation's summary.
	Heading string `json:"heading"`
	// HasBody reports whether a request has a JSON body.
	HasBody bool `json:"hasBody"`
}

// Check opens pages below base in Chromium, at a width of 360 pixels, in light and dark mode, and
// makes a call in the console.
//
// It returns a sentence for each fault: everything that axe finds, that is wider than the window or
// that a page's policy refuses, and each request to another host.
//
// Check installs axe and a driver, which needs npm and its registry. It fails the test if the
// machine has no Chromium.
func Check(t testing.TB, base string, pages []string, console Console) (wrong []string) {
	t.Helper()
	input := map[string]any{"base": base, "chromium": chromium(t), "pages": pages, "console": console}
	npm.Run(t, files, "check.mjs", runTime, input, &wrong)
	return wrong
}

// chromium returns the path of Chromium, or fails the test.
func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("this machine has no Chromium: on Debian it is the package chromium")
	return ""
}
