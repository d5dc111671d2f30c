package browser

import (
	"testing"

	"crier/tests/npm"
)

// Lines returns the lines that Chromium draws for each HTML document, with single spaces between
// words, and without blank lines and list markers.
//
// A link is followed by its address in parentheses unless its text contains the address. A picture
// whose alternative text is an emoji becomes that emoji. Documents are parsed as innerHTML parses
// them. Lines has the same requirements as Check.
func Lines(t testing.TB, documents []string) (lines [][]string) {
	t.Helper()
	input := map[string]any{"chromium": chromium(t), "documents": documents}
	npm.Run(t, files, "lines.mjs", runTime, input, &lines)
	return lines
}
