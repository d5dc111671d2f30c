//go:build !race

package publishing_test

import (
	"strings"
	"testing"

	"crier/publishing"
)

// In quadratic time, each of these would take hours. With the race detector they would take minutes
// altogether, so they run without it.
func TestContent_IsReadInLinearTime(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{
		"<!--<p>", "<!doctype ", "<!doctype <p>", "<p \"'<p '\"", "<p>", "<ul><li>", "<a href=x>", "<a href='http://x/'>y", "</p>", "<strong><u>",
		"<u><p></p>", "</p></u>", "<ul><u>", "<p><u></p>", "<strong><h1></strong>", "&", "<br", "<script>", "<p><style>", "\x01<", "<p title='", "<p title=\"x\"><",
	} {
		for _, kind := range []publishing.ContentType{"", publishing.ContentHTML} {
			publishing.ReadContent(strings.Repeat(piece, publishing.MaxAllTexts/len(piece)), kind).Plain()
		}
	}
}
