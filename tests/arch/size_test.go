package arch

import (
	"maps"
	"slices"
	"strings"
)

// The maximum sizes of a package and a type, not counting tests. A larger package or type holds
// more than one noun.
const (
	mostLines   = 3_500
	mostFiles   = 25
	mostMethods = 40
)

// size is the content of a package that counts against the maximum.
type size struct {
	first        file
	files, lines int
	methods      map[string]int
}

// sizeRule reports packages and types that are too large.
func sizeRule(t tree) (out []violation) {
	sizes := map[string]*size{}
	for _, f := range t.files {
		if f.test || inFolder(f.dir(), "tests") || strings.HasPrefix(f.dir(), "publishing/connector/conformance") {
			continue
		}
		of, known := sizes[f.dir()]
		if !known {
			of = &size{first: f, methods: map[string]int{}}
			sizes[f.dir()] = of
		}
		of.files++
		of.lines += f.lines
		for name, n := range f.methods {
			of.methods[name] += n
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(sizes)) {
		of := sizes[dir]
		if of.lines > mostLines {
			out = append(out, newViolation(of.first, 1, "lines", "%s has %d lines, want at most %d", dir, of.lines, mostLines))
		}
		if of.files > mostFiles {
			out = append(out, newViolation(of.first, 1, "files", "%s has %d files, want at most %d", dir, of.files, mostFiles))
		}
		for _, name := range slices.Sorted(maps.Keys(of.methods)) {
			if n := of.methods[name]; n > mostMethods {
				out = append(out, newViolation(of.first, 1, name, "%s.%s has %d methods, want at most %d", dir, name, n, mostMethods))
			}
		}
	}
	return out
}

// edgeRule reports endpoints of one noun that import another noun's endpoints.
func edgeRule(f file) (out []violation) {
	if !inFolder(f.dir(), "apps/edge/api", "apps/edge/account") {
		return nil
	}
	for _, i := range f.imports {
		dir, ours := i.internal()
		if ours && dir != f.dir() && inFolder(dir, "apps/edge/api", "apps/edge/account") {
			out = append(out, newViolation(f, i.line, dir, "the endpoints of a noun may not import those of another: %s", dir))
		}
	}
	return out
}
