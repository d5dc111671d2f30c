package richtext_test

import (
	"os"
	"strings"
	"testing"

	"crier/publishing/richtext"
)

type editorDocument struct{ name, html, want string }

// editorDocuments returns the documents of testdata/editors.txt.
func editorDocuments(t testing.TB) (out []editorDocument) {
	t.Helper()
	b, err := os.ReadFile("testdata/editors.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range strings.Split(string(b), "\n=== ")[1:] {
		name, rest, _ := strings.Cut(d, " ===\n")
		html, want, ok := strings.Cut(rest, "\n---\n")
		if !ok {
			t.Fatalf("%s has no expected text", name)
		}
		out = append(out, editorDocument{name: name, html: html, want: strings.TrimSuffix(want, "\n")})
	}
	return out
}

// TestEditors parses documents that editors write. TestBrowser_DrawsTheSameLines compares the same
// documents with Chromium's lines.
func TestEditors(t *testing.T) {
	t.Parallel()
	all := editorDocuments(t)
	if len(all) < 60 {
		t.Errorf("got %d documents, want at least 60", len(all))
	}
	for _, d := range all {
		doc := richtext.Parse(d.html)
		// A no-break space looks like a space in the file.
		if got := strings.ReplaceAll(doc.Plain(), "\u00a0", " "); got != d.want {
			t.Errorf("%s:\ngot  %q\nwant %q", d.name, got, d.want)
		}
		if again := richtext.Parse(doc.HTML()); again.HTML() != doc.HTML() || again.Plain() != doc.Plain() {
			t.Errorf("%s: %q read again is %q", d.name, doc.HTML(), again.HTML())
		}
		if !richtext.IsHTML(d.html) && !strings.HasPrefix(d.name, "Contenteditable") {
			t.Errorf("%s is not taken for HTML", d.name)
		}
	}
}
