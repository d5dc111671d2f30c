package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// unaudited are the commands of principals that leave no entry in the audit log, with the reason.
var unaudited = map[string]string{
	"media.SetAlt":    "a text of a file, which posts show",
	"media.Delete":    "members delete files every day; a post keeps its record of them",
	"slot.SetPlan":    "posting times, which the channel shows",
	"post.SetRelease": "the timeline of the post has it",
	"tag.change":      "tags decide about nothing",
	"scheduler.Pause": "setPause, which it calls, appends the entry",
	"webhook.change":  "its callers append the entry with what they have changed",
}

// commands returns the functions of a source that run a transaction in the name of a principal, and
// whether each appends to the audit log.
func commands(t *testing.T, path, noun string, source any) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
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
			found[noun+"."+f.Name.Name] = audits
		}
	}
	return found
}

func TestCommands_HaveAnAuditDecision(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../publishing/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	needed := map[string]bool{}
	for _, path := range files {
		noun := filepath.Base(filepath.Dir(path))
		if noun == "db" || strings.HasSuffix(path, "_test.go") {
			continue
		}
		for name, audits := range commands(t, path, noun, nil) {
			switch {
			case !audits && unaudited[name] == "":
				t.Errorf("%s changes something for a principal: append an audit entry in its transaction, or say why not", name)
			case audits && unaudited[name] != "":
				t.Errorf("%s has a reason to append no entry, but appends one", name)
			}
			needed[name] = true
		}
	}
	for name := range unaudited {
		if !needed[name] {
			t.Errorf("there is no command %s", name)
		}
	}
}

func TestCommands_MissingDecisionIsReported(t *testing.T) {
	t.Parallel()
	const source = `package x

func (s *Things) Delete() error {
	return s.db.InOrgAs(ctx, p, func(tx *db.Tx) error { return xstore.Delete(ctx, tx) })
}
`
	if audits, found := commands(t, "x.go", "x", source)["x.Delete"]; !found || audits {
		t.Errorf("a command without an entry: found %t, audits %t, want it found without one", found, audits)
	}
}
