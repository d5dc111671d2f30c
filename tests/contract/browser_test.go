//go:build long

package contract

import (
	"testing"

	"crier/tests/browser"
)

// TestDocs_InChromium: axe finds nothing on the pages of the documentation, and the console makes a call under its
// policy.
func TestDocs_InChromium(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	c := o.channel(t, "A")
	pages := []string{
		"/docs", "/docs/application", "/docs/quick-start", "/docs/authentication", "/docs/editing", "/docs/errors", "/docs/limits",
		"/docs/idempotency", "/docs/webhooks",
	}
	bodies := []browser.Operation{{ID: "create-tag", Heading: "Create a tag"}}
	_, all := publicOperations(t, r)
	for _, op := range all {
		if op.Body != nil && op.Body.Content["application/json"].Schema != nil && op.ID != "create-tag" {
			bodies = append(bodies, browser.Operation{ID: op.ID, Heading: op.Summary})
		}
	}
	wrong := browser.Check(t, "http://"+r.app.Addr(), pages, browser.Console{
		Path: "/docs/console", Key: o.key, Want: c.account, WithBody: bodies,
		Operation: browser.Operation{ID: "list-channels", Words: "integrations CONNECTED", Heading: "List the connected channels"},
	})
	for _, sentence := range wrong {
		t.Error(sentence)
	}
}
