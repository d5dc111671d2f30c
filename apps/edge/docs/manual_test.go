package docs_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"crier/docs"
)

var (
	manualLink   = regexp.MustCompile(`<a href="([^"#]*)(?:#([^"]*))?"`)
	manualAnchor = regexp.MustCompile(` id="([^"]*)"`)
)

// TestManual_ServesEveryFile also checks that each link of the manual leads to a page of the
// service and, with an anchor, to a heading of that page.
func TestManual_ServesEveryFile(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(docs.Pages, "*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, anchors := map[string]string{}, map[string]bool{}
	visit := func(address string) string {
		if _, ok := pages[address]; !ok {
			a := get(t, address)
			want(t, a, 200)
			pages[address] = a.body
			for _, m := range manualAnchor.FindAllStringSubmatch(a.body, -1) {
				anchors[address+"#"+m[1]] = true
			}
		}
		return pages[address]
	}
	links := 0
	for _, file := range files {
		address := "/docs/" + strings.TrimSuffix(strings.TrimSuffix(file, ".md"), "/README")
		for _, m := range manualLink.FindAllStringSubmatch(visit(address), -1) {
			target, anchor := m[1], m[2]
			if target == "" {
				target = address
			}
			if !strings.HasPrefix(target, "/") {
				if !strings.HasPrefix(target, "http") {
					t.Errorf("%s links to %s, want an address of the service or a URL", address, target)
				}
				continue
			}
			links++
			if visit(target); anchor != "" && !anchors[target+"#"+anchor] {
				t.Errorf("%s links to %s#%s, which has no such heading", address, target, anchor)
			}
		}
	}
	if len(files) < 15 || links < 300 {
		t.Errorf("got %d files with %d links, want at least 15 with 300", len(files), links)
	}
}

func TestManual_ShowsMarkdownAsHTML(t *testing.T) {
	t.Parallel()
	want(t, get(t, "/docs/self-hosting/configuration"), 200,
		"<title>Configuration · ", `<h2 id="essentials">Essentials</h2>`, "<td><code>DATABASE_URL</code></td>",
		`<a href="/docs/self-hosting/configuration" aria-current="page">`, `<a href="/docs/self-hosting/install">`)
	want(t, get(t, "/docs/self-hosting/plans"), 200, "ops/plans.json (in the source code)")
	want(t, get(t, "/docs/developing/dev"), 200, "README (apps/sim/sandbox/README.md in the source code)")
	want(t, get(t, "/docs/self-hosting/install"), 200, `<pre tabindex="0"><code class="language-sql">`)
	want(t, get(t, "/docs/self-hosting/nothing"), 404, "There is no such page.")
}
