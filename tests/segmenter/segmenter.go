// Package segmenter counts grapheme clusters as the Intl.Segmenter of a new Node.js does, for tests.
package segmenter

import (
	"embed"
	"testing"
	"time"

	"crier/tests/npm"
)

//go:embed package.json package-lock.json count.mjs
var files embed.FS

// runTime is for the install of Node.js and for hundreds of thousands of texts.
const runTime = 4 * time.Minute

// Counts returns how many grapheme clusters each text has, and the version of Unicode that says so. It needs npm and its
// registry.
func Counts(t testing.TB, texts []string) (unicode string, counts []int) {
	t.Helper()
	var out struct {
		Unicode string `json:"unicode"`
		Counts  []int  `json:"counts"`
	}
	npm.Run(t, files, "count.mjs", runTime, texts, &out)
	return out.Unicode, out.Counts
}
