package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// command is a function that runs a transaction in the name of a principal.
type command struct {
	// audits is set if it appends to the audit log.
	audits bool
	// explains is set if its comment says where the audit entry is, or why there is none.
	explains bool
}

// commands returns the commands of a source.
func commands(t *testing.T, path, noun string, source any) map[string]command {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]command{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		confirmed, audits := false, false
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				confirmed = confirmed || s.Sel.Name == "InOrgAs"
				audits = audits || strings.HasPrefix(strings.ToLower(s.Sel.Name), "audit")
			}
			return true
		})
		if confirmed {
			found[noun+"."+f.Name.Name] = command{
				audits: audits, explains: strings.Contains(strings.Join(strings.Fields(f.Doc.Text()), " "), "audit entry"),
			}
		}
	}
	return found
}

func TestCommands_HaveAuditDecision(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../publishing/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range files {
		noun := filepath.Base(filepath.Dir(path))
		if noun == "db" || strings.HasSuffix(path, "_test.go") {
			continue
		}
		for name, c := range commands(t, path, noun, nil) {
			n++
			switch {
			case !c.audits && !c.explains:
				t.Errorf("%s changes something for a principal: append an audit entry in its transaction, "+
					"or say in its comment why it leaves no audit entry", name)
			case c.audits && c.explains:
				t.Errorf("the comment of %s says that it leaves no audit entry, but it appends one", name)
			}
		}
	}
	if n == 0 {
		t.Error("found no commands")
	}
}

func TestCommands_MissingDecisionIsReported(t *testing.T) {
	t.Parallel()
	const source = `package x

func (s *Things) Delete() error {
	return s.db.InOrgAs(ctx, p, func(tx *db.Tx) error { return xstore.Delete(ctx, tx) })
}

// Rename leaves no audit
// entry.
func (s *Things) Rename() error {
	return s.db.InOrgAs(ctx, p, func(tx *db.Tx) error { return xstore.Rename(ctx, tx) })
}
`
	found := commands(t, "x.go", "x", source)
	if c, ok := found["x.Delete"]; !ok || c.audits || c.explains {
		t.Errorf("a command without an entry: got %+v, found %t", c, ok)
	}
	if !found["x.Rename"].explains {
		t.Error("the reason of a command is not found")
	}
}
