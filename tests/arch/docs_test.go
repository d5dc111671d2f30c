package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// documents are the pages for people, below the root of the module.
var documents = []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "*/README.md", "*/*/*/README.md"}

// quotedFile matches a file in back quotes, such as `sql/claim.sql`; quotedPath a path from the root of the module;
// link a relative link.
var (
	quotedFile = regexp.MustCompile("`([\\w./-]+\\.(?:go|sql|md|txt|json|proto|yml))`")
	quotedPath = regexp.MustCompile("`((?:apps|actors|docs|ops|platform|publishing|tenancy|tests)/[\\w./-]+)`")
	link       = regexp.MustCompile(`\]\(([\w./-]+)(?:#[\w-]+)?\)`)
)

func TestDocuments_NameExistingFiles(t *testing.T) {
	t.Parallel()
	const root = "../.."
	paths := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" && !d.IsDir() { // in a worktree; SkipDir would skip its folder, the root
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
	// exists reports whether a file or folder has this path, or one that ends in it.
	exists := func(name string) bool {
		for path := range paths {
			if strings.HasSuffix(path, "/"+strings.Trim(name, "/")) {
				return true
			}
		}
		return false
	}
	checked := 0
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
			for _, m := range append(quotedFile.FindAllSubmatch(text, -1), quotedPath.FindAllSubmatch(text, -1)...) {
				if name := string(m[1]); !strings.Contains(name, "NNNN") && !exists(name) {
					t.Errorf("%s names %s, which does not exist", file, name)
				}
				checked++
			}
			for _, m := range link.FindAllSubmatch(text, -1) {
				if _, err := os.Stat(filepath.Join(filepath.Dir(file), string(m[1]))); err != nil {
					t.Errorf("%s links to %s: %v", file, m[1], err)
				}
				checked++
			}
		}
	}
	if checked < 50 {
		t.Errorf("%d names are checked, want at least 50", checked)
	}
}
