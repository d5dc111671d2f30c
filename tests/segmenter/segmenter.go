// Package segmenter counts grapheme clusters with the Intl.Segmenter of a recent Node.js, for
// tests.
package segmenter

import (
	"embed"
	"testing"
	"time"

	"crier/tests/npm"
)

//go:embed package.json package-lock.json count.mjs
var files embed.FS

// runTime is long enough to install Node.js and to count hundreds of thousands of texts.
const runTime = 4 * time.Minute

// Counts returns the number of grapheme clusters in each text, and the Unicode version that Node.js
// uses to count them. It needs npm and its registry.
func Counts(t testing.TB, texts []string) (unicode string, counts []int) {
	t.Helper()
	var out struct {
		Unicode string `json:"unicode"`
		Counts  []int  `json:"counts"`
	}
	npm.Run(t, files, "count.mjs", runTime, texts, &out)
	return out.Unicode, out.Counts
}
