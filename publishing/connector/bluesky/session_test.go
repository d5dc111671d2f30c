package bluesky

import (
	"encoding/json"
	"testing"
)

// The DID document names the server that gets the account's tokens.
func TestServerOf_UsesOnlyTheAccountsDocument(t *testing.T) {
	t.Parallel()
	const own, other = "did:plc:own", "did:plc:other"
	document := func(did, id, kind, address string) string {
		return `{"id":"` + did + `","service":[{"id":"` + id + `","type":"` + kind + `","serviceEndpoint":"` + address + `"}]}`
	}
	const kind, server = "AtprotoPersonalDataServer", "https://pds.example.com"
	for name, c := range map[string]struct{ document, want string }{
		"the account's":                     {document: document(own, "#atproto_pds", kind, server), want: server},
		"the account's, with a whole id":    {document: document(own, own+"#atproto_pds", kind, server), want: server},
		"another account's":                 {document: document(other, "#atproto_pds", kind, server), want: ""},
		"one without an account":            {document: document("", "#atproto_pds", kind, server), want: ""},
		"one with another account's server": {document: document(own, other+"#atproto_pds", kind, server), want: ""},
		"one with another service":          {document: document(own, "#labeler", kind, server), want: ""},
		"one with another kind of service":  {document: document(own, "#atproto_pds", "AtprotoLabeler", server), want: ""},
		"one whose server is not https":     {document: document(own, "#atproto_pds", kind, "http://pds.example.com"), want: ""},
		"one that is no JSON":               {document: "x", want: ""},
		"none":                              {document: "", want: ""},
	} {
		if got := serverOf(session{DID: own, DIDDoc: json.RawMessage(c.document)}); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
