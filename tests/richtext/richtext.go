// Package richtext finds facets in texts with Bluesky's reference library, for tests.
package richtext

import (
	"embed"
	"testing"
	"time"

	"crier/tests/npm"
)

//go:embed package.json package-lock.json detect.mjs
var files embed.FS

// runTime is long enough to install the library and to read tens of thousands of texts.
const runTime = 4 * time.Minute

// Facet is a range of bytes in a text and its target: an address, a handle without @, or a tag
// without #.
type Facet struct {
	Start  int    `json:"start"`
	End    int    `json:"end"`
	Target string `json:"target"`
}

// Facets returns the facets of each text. It needs npm and its registry.
func Facets(t testing.TB, texts []string) [][]Facet {
	t.Helper()
	var out [][]Facet
	npm.Run(t, files, "detect.mjs", runTime, texts, &out)
	return out
}
