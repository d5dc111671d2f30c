//go:build long

package contract

import (
	"testing"

	"crier/tests/browser"
)

// TestDocs_InChromium checks that axe finds nothing on the pages of the documentation, and that the
// console can make a call under its policy.
func TestDocs_InChromium(t *testing.T) {
	t.Parallel()
	r := common(t)
	o := r.organization(t)
	c := o.channel(t, "A")
	operations := []browser.Operation{{ID: "create-tag", Heading: "Create a tag", HasBody: true}}
	_, all := publicOperations(t, r)
	for _, op := range all {
		if op.ID != "create-tag" && op.ID != "list-posts-alias" {
			body := op.Body != nil && op.Body.Content["application/json"].Schema != nil
			operations = append(operations, browser.Operation{ID: op.ID, Heading: op.Summary, HasBody: body})
		}
	}
	wrong := browser.Check(t, "http://"+r.app.Addr(), docPages(), browser.Console{
		Path: "/docs/console", Key: o.key, Want: c.account, Operations: operations,
		Operation: browser.Operation{ID: "list-channels", Words: "integrations CONNECTED", Heading: "List the connected channels"},
	})
	for _, sentence := range wrong {
		t.Error(sentence)
	}
}
