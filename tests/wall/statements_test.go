package wall

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// statements returns the statements that need a question: the functions that take an organization
// or a transaction of one. Examples: "webhook.AddWebhook" of publishing and "tenancy/key.LockKey"
// of tenancy.
func statements(t *testing.T) (names []string) {
	t.Helper()
	stores, err := filepath.Glob("../../publishing/*/store/*.go")
	must(t, err)
	shared, err := filepath.Glob("../../publishing/db/*.go")
	must(t, err)
	below, err := filepath.Glob("../../tenancy/*/store/*.go")
	must(t, err)
	agents, err := filepath.Glob("../../oidc/*/store/*.go")
	must(t, err)
	all := slices.Concat(stores, shared, below, agents)
	for _, leaf := range []string{"db", "credential", "notice", "proof", "entry"} {
		files, err := filepath.Glob("../../tenancy/" + leaf + "/*.go")
		must(t, err)
		all = append(all, files...)
	}
	for _, path := range all {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		must(t, err)
		parts := strings.Split(filepath.ToSlash(path), "/")
		noun := parts[3]
		if parts[2] != "publishing" {
			noun = parts[2] + "/" + noun
		}
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
		case "*db.Tx", "*Tx", "*db.OrgTx", "*OrgTx":
			inTx = true
		case "tenancy.OrgID":
			org = true
		}
	}
	return runs && (org || inTx)
}
