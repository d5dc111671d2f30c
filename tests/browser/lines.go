package browser

import (
	"testing"

	"crier/tests/npm"
)

// Lines returns the lines that Chromium draws for each document of HTML: their words with single spaces, without blank
// lines and without the markers of lists. The address of a link follows its text, in parentheses, unless the text has it,
// and a picture whose alternative text is an emoji is that emoji. Documents are parsed as innerHTML is. It needs what
// Check needs.
func Lines(t testing.TB, documents []string) (lines [][]string) {
	t.Helper()
	input := map[string]any{"chromium": chromium(t), "documents": documents}
	npm.Run(t, files, "lines.mjs", runTime, input, &lines)
	return lines
}
