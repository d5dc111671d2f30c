package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "crier"

// tree is what the rules check. It is parsed but not type-checked, so it has the files of every
// system and build tag.
type tree struct {
	top   []string // entries of the root; folder names end in "/"
	files []file   // Go files, sorted by path
}

type file struct {
	path    string // from the root, with slashes
	pkg     string // as in the package clause
	test    bool   // *_test.go
	doc     string // the package comment
	imports []imported
	uses    []use
	lines   int
	methods map[string]int // number of methods by receiver type
}

// imported is one import. name is "" unless the file names the import.
type imported struct {
	path, name string
	line       int
}

// use is a reference to a package's name (http.Get), a call of a function without a package (panic,
// init), or a go statement, whose name is "go".
type use struct {
	path, name string
	line       int
}

func (f file) dir() string { return path.Dir(f.path) }

// load parses the tree below root.
func load(root string) (tree, error) {
	var t tree
	entries, err := os.ReadDir(root)
	if err != nil {
		return t, err
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		if !ignored(name) {
			t.top = append(t.top, name)
		}
	}
	err = filepath.WalkDir(root, func(full string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, full)
		if err != nil || rel == "." {
			return err
		}
		rel = filepath.ToSlash(rel)
		if e.IsDir() {
			if ignored(rel + "/") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || slices.Contains(strings.Split(rel, "/"), "testdata") || !e.Type().IsRegular() {
			return nil
		}
		body, err := os.ReadFile(full)
		if err != nil {
			return err
		}
		return t.add(rel, string(body))
	})
	return t, err
}

// ignored reports whether a path is git's own or in .gitignore.
func ignored(rel string) bool {
	base := path.Base(rel)
	return slices.Contains([]string{".git", ".git/", ".crier/", "crier"}, rel) ||
		strings.HasSuffix(rel, "/") && base == "node_modules" || strings.HasSuffix(base, ".test") || strings.HasSuffix(base, ".prof")
}

func (t *tree) add(rel, body string) error {
	f, err := parse(rel, body)
	t.files = append(t.files, f)
	return err
}

func parse(rel, body string) (file, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, rel, body, parser.ParseComments)
	if err != nil {
		return file{}, err
	}
	f := file{
		path: rel, pkg: parsed.Name.Name, test: strings.HasSuffix(rel, "_test.go"), doc: parsed.Doc.Text(),
		lines: strings.Count(body, "\n"), methods: map[string]int{},
	}
	for _, d := range parsed.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
			f.methods[receiver(fn.Recv.List[0].Type)]++
		}
	}
	names := map[string]string{}
	for _, spec := range parsed.Imports {
		i := imported{line: set.Position(spec.Pos()).Line}
		i.path, err = strconv.Unquote(spec.Path.Value)
		if err != nil {
			return f, err
		}
		local := defaultName(i.path)
		if spec.Name != nil {
			i.name, local = spec.Name.Name, spec.Name.Name
		}
		names[local] = i.path
		f.imports = append(f.imports, i)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		f.addUse(n, names, func(p token.Pos) int { return set.Position(p).Line })
		return true
	})
	return f, nil
}

// receiver returns the name of a receiver's type.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

func (f *file) addUse(n ast.Node, names map[string]string, line func(token.Pos) int) {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && names[x.Name] != "" {
			f.uses = append(f.uses, use{path: names[x.Name], name: n.Sel.Name, line: line(n.Pos())})
		}
	case *ast.CallExpr:
		if fn, ok := ast.Unparen(n.Fun).(*ast.Ident); ok {
			f.uses = append(f.uses, use{name: fn.Name, line: line(n.Pos())})
		}
	case *ast.GoStmt:
		f.uses = append(f.uses, use{name: "go", line: line(n.Pos())})
	case *ast.FuncDecl:
		if n.Recv == nil && n.Name.Name == "init" {
			f.uses = append(f.uses, use{name: "init", line: line(n.Pos())})
		}
	}
}

// defaultName returns the name that an import path usually has: its last element that is not a
// version.
func defaultName(importPath string) string {
	base := path.Base(importPath)
	if v, ok := strings.CutPrefix(base, "v"); ok && path.Dir(importPath) != "." {
		if _, err := strconv.Atoi(v); err == nil {
			return path.Base(path.Dir(importPath))
		}
	}
	return base
}

// inFolder reports whether dir is one of the folders or inside one. "*" matches one element.
func inFolder(dir string, folders ...string) bool {
	have := strings.Split(dir, "/")
	return slices.ContainsFunc(folders, func(folder string) bool {
		want := strings.Split(folder, "/")
		if len(want) > len(have) {
			return false
		}
		for i, w := range want {
			if w != "*" && w != have[i] {
				return false
			}
		}
		return true
	})
}

// isFolder is like inFolder, but excludes sub-folders.
func isFolder(dir string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return inFolder(dir, folder) && strings.Count(dir, "/") == strings.Count(folder, "/")
	})
}

// internal returns the folder of an import from this module.
func (i imported) internal() (dir string, ok bool) { return strings.CutPrefix(i.path, module+"/") }

// external reports whether the import is from another module: its first element has a dot.
func (i imported) external() bool {
	first, _, _ := strings.Cut(i.path, "/")
	return strings.Contains(first, ".")
}
