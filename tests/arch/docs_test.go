package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"crier/apps/boot"
)

// root is the root of the module.
const root = "../.."

// documents are patterns of the pages for people, below the root.
var documents = []string{
	"*.md", "docs/*/*.md", "*/README.md", "*/*/README.md", "*/*/*/README.md", "*/*/*/*/README.md",
}

var (
	// quotedFile matches a file in back quotes, such as `sql/claim.sql`.
	quotedFile = regexp.MustCompile("`([\\w./-]+\\.(?:go|sql|md|txt|json|proto|yml))`")
	// quotedPath matches a path from the root in back quotes.
	quotedPath = regexp.MustCompile("`((?:apps|actors|docs|ops|platform|publishing|tenancy|tests)/[\\w./-]+)`")
	// link matches the target of a relative link: its path, its anchor, or both.
	link        = regexp.MustCompile(`\]\(([\w./-]*)(?:#([\w-]+))?\)`)
	codeBlock   = regexp.MustCompile("(?ms)^```.*?^```$")
	heading     = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	punctuation = regexp.MustCompile(`[^\w\- ]`)
)

func TestDocs_NameExistingFiles(t *testing.T) {
	t.Parallel()
	paths := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// In a worktree .git is a file, and SkipDir would skip its folder, the root.
		if d.Name() == ".git" && !d.IsDir() {
			return nil
		}
		if d.Name() == ".git" || d.Name() == ".crier" || d.Name() == "node_modules" {
			return fs.SkipDir
		}
		path, err = filepath.Rel(root, path)
		paths["/"+filepath.ToSlash(path)] = true
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// exists reports whether a file or folder has this path or a path that ends with it.
	exists := func(name string) bool {
		for path := range paths {
			if strings.HasSuffix(path, "/"+strings.Trim(name, "/")) {
				return true
			}
		}
		return false
	}
	// checked has pairs of a page and a name, because a page repeats names.
	checked := map[[2]string]bool{}
	for page, text := range readDocuments(t) {
		for _, m := range append(quotedFile.FindAllStringSubmatch(text, -1), quotedPath.FindAllStringSubmatch(text, -1)...) {
			name := [2]string{page, m[1]}
			if !checked[name] && !strings.Contains(m[1], "NNNN") && !exists(m[1]) {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
			checked[name] = true
		}
	}
	if len(checked) < 50 {
		t.Errorf("%d names are checked, want at least 50", len(checked))
	}
}

// TestDocs_LinksResolve checks the relative links between the pages, with their anchors.
func TestDocs_LinksResolve(t *testing.T) {
	t.Parallel()
	pages := readDocuments(t)
	checked := 0
	for page, text := range pages {
		for _, m := range link.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			checked++
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
				continue
			}
			if anchor := m[2]; anchor != "" && !anchors(pages[target])[anchor] {
				t.Errorf("%s links to %s#%s: got no such heading", page, target, anchor)
			}
		}
	}
	if checked < 50 {
		t.Errorf("%d links are checked, want at least 50", checked)
	}
}

func TestDocs_ConfigurationPageIsCurrent(t *testing.T) {
	t.Parallel()
	const path = "docs/self-hosting/configuration.md"
	got, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != crier(t, "config", "--markdown") {
		t.Errorf("%s is stale: run `go run ./apps/crier config --markdown >%s` and commit it", path, path)
	}
}

func TestDocs_ConfigurationPageListsEachVariableOnce(t *testing.T) {
	t.Parallel()
	rows := map[string]int{}
	for line := range strings.Lines(crier(t, "config", "--markdown")) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` |"); ok && strings.HasPrefix(line, "| `") {
			rows[name]++
			if n := strings.Count(line, "|"); n != 4 {
				t.Errorf("the row of %s has %d bars, want 4: its doc tag must not contain any", name, n)
			}
		}
	}
	known := 0
	for line := range strings.Lines(crier(t, "config")) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if known++; rows[name] != 1 {
			t.Errorf("%s: got %d rows, want 1: add the variable to one of the sections in configpage.go", name, rows[name])
		}
		if strings.TrimSpace(text) == "" {
			t.Errorf("%s has no doc tag", name)
		}
	}
	if known < 50 || len(rows) != known {
		t.Errorf("got rows of %d variables, want one for each of %d", len(rows), known)
	}
}

// crier returns the output of a command of the binary.
func crier(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	if code := boot.Main(t.Context(), args, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("crier %v: got exit code %d: %s", args, code, &errs)
	}
	return out.String()
}

// readDocuments returns the texts of the pages by their paths below the root.
func readDocuments(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range documents {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			page, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			pages[page] = string(text)
		}
	}
	return pages
}

// anchors returns the anchors that GitHub makes of the headings of a page. Headings of a page are
// unique, so none of them has a number at its end.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		plain := punctuation.ReplaceAllString(strings.ToLower(m[1]), "")
		out[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return out
}
