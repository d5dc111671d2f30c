// Package browser checks pages in Chromium.
package browser

import (
	"embed"
	"os/exec"
	"testing"
	"time"

	"crier/tests/npm"
)

//go:embed package.json package-lock.json check.mjs lines.mjs
var files embed.FS

// runTime is for the install of two packages, for the pages and for all operations in the console, on a busy machine.
const runTime = 8 * time.Minute

// Console is a call that Check makes in the API console.
type Console struct {
	Path      string    `json:"path"`
	Operation Operation `json:"operation"`
	Key       string    `json:"key"`
	// Want is a text of the answer.
	Want string `json:"want"`
	// Operations are all operations. The first one has a body, with that of its example it is sent.
	Operations []Operation `json:"operations"`
}

// Operation is an operation, and how the search of the console finds it.
type Operation struct {
	ID string `json:"id"`
	// Words are those of a search whose first result it is. Those of Operations have none.
	Words string `json:"words"`
	// Heading is its summary.
	Heading string `json:"heading"`
	// HasBody is whether a request has a JSON body.
	HasBody bool `json:"hasBody"`
}

// Check opens pages below base in Chromium, at a width of 360 pixels, light and dark, and makes a call in the console.
// It returns a sentence for each fault: what axe finds, what is wider than the window, what the policy of a page
// refuses, and each request to another host. It installs axe and a driver, which needs npm and its registry. A machine
// without Chromium fails the test.
func Check(t testing.TB, base string, pages []string, console Console) (wrong []string) {
	t.Helper()
	input := map[string]any{"base": base, "chromium": chromium(t), "pages": pages, "console": console}
	npm.Run(t, files, "check.mjs", runTime, input, &wrong)
	return wrong
}

// chromium returns the path of Chromium.
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
