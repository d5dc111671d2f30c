package wall

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"
)

// statements returns the statements of publishing that need a question, for example
// "webhook.AddWebhook": the functions that take an organization or a transaction of one.
func statements(t *testing.T) (names []string) {
	t.Helper()
	stores, err := filepath.Glob("../../publishing/*/store/*.go")
	must(t, err)
	shared, err := filepath.Glob("../../publishing/db/*.go")
	must(t, err)
	for _, path := range append(stores, shared...) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		must(t, err)
		noun := strings.Split(filepath.ToSlash(path), "/")[3]
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() && needsQuestion(f.Type.Params) {
				names = append(names, noun+"."+f.Name.Name)
			}
		}
	}
	if len(names) < 100 {
		t.Fatalf("found %d statements, want those of all stores", len(names))
	}
	return names
}

func needsQuestion(params *ast.FieldList) bool {
	inTx, runs, org := false, false, false
	for _, p := range params.List {
		switch types.ExprString(p.Type) {
		case "context.Context":
			runs = true
		case "*db.Tx", "*Tx":
			inTx = true
		case "tenancy.OrgID":
			org = true
		}
	}
	return runs && (org || inTx)
}
