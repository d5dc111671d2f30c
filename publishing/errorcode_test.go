package publishing_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"crier/publishing"
)

// TestErrorCodes_HaveEveryConstant checks that every constant in state.go whose name begins with
// Code is described.
func TestErrorCodes_HaveEveryConstant(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "state.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Code") {
			return true
		}
		code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, code)
		return true
	})
	var got []string
	for _, c := range publishing.ErrorCodes() {
		got = append(got, c.Code)
		if c.Meaning == "" || c.Remedy == "" {
			t.Errorf("%s has the meaning %q and the remedy %q, want both", c.Code, c.Meaning, c.Remedy)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 9 || !slices.Equal(got, want) {
		t.Errorf("described are %v, want %v", got, want)
	}
}
