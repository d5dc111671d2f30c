package docs

import (
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

func TestPython_ConvertsTokensOutsideOfStrings(t *testing.T) {
	t.Parallel()
	const json = `{"true": true, "b": [false, null], "c": "null \"true\" false"}`
	const want = `{"true": True, "b": [False, None], "c": "null \"true\" false"}`
	if got := python(json); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestShell_QuotesTheQuote(t *testing.T) {
	t.Parallel()
	if got, want := shell("it's"), `it'\''s`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBlocks_AreHeadingsParagraphsAndLists(t *testing.T) {
	t.Parallel()
	got := blocks("## Title\n\nA paragraph.\n\n- one\n- two")
	if len(got) != 3 || got[0].Heading != "Title" || got[1].Text != "A paragraph." || strings.Join(got[2].Items, ",") != "one,two" {
		t.Errorf("got %+v", got)
	}
}

func TestSection_IsThatOfTheNounOrOfTheTag(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/public/v1/posts/{id}": "Posts", "/public/v1/integrations/{id}/queue-plan": "Posting times",
		"/public/v1/connectors/{id}/analytics": "Analytics and reports", "/public/v1/something-new": "More", "/user/self": "Public API",
	} {
		o := operation{Operation: &huma.Operation{Path: path, Tags: []string{"Public API"}}}
		if got := o.section(); got != want {
			t.Errorf("%s is in the section %q, want %q", path, got, want)
		}
	}
	tagged := operation{Operation: &huma.Operation{Path: "/public/v1/posts/{id}/approval", Tags: []string{"Approvals"}}}
	if got := tagged.section(); got != "Approvals" {
		t.Errorf("an operation with a tag of its own is in the section %q, want Approvals", got)
	}
}

func TestUseSchemas_FollowsReferences(t *testing.T) {
	t.Parallel()
	ref := func(name string) map[string]any { return map[string]any{"$ref": schemaPrefix + name} }
	all := map[string]any{
		"A": map[string]any{"properties": map[string]any{"b": ref("B"), "a": ref("A")}}, "B": map[string]any{"type": "string"}, "C": map[string]any{},
	}
	used := map[string]any{}
	useSchemas([]any{ref("A")}, all, used)
	if used["A"] == nil || used["B"] == nil || used["C"] != nil {
		t.Errorf("got the schemas %v, want A and B", used)
	}
}
