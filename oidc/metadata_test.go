package oidc

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestRegistrant(t *testing.T) {
	t.Parallel()
	good := []string{"https://client.example/cb"}
	for name, c := range map[string]struct {
		m    Metadata
		want Code
		auth AuthMethod
	}{
		"the least":           {m: Metadata{RedirectURIs: good}, auth: AuthBasic},
		"public":              {m: Metadata{RedirectURIs: good, Auth: "none"}, auth: AuthNone},
		"with a secret":       {m: Metadata{RedirectURIs: good, Auth: "client_secret_post"}, auth: AuthPost},
		"more than we offer":  {m: Metadata{RedirectURIs: good, Auth: "none", GrantTypes: []string{"implicit", "authorization_code"}, ResponseTypes: []string{"token", "code"}}, auth: AuthNone},
		"no redirect URI":     {m: Metadata{}, want: InvalidRedirectURI},
		"a bad redirect URI":  {m: Metadata{RedirectURIs: []string{"javascript:x"}}, want: InvalidRedirectURI},
		"an unknown method":   {m: Metadata{RedirectURIs: good, Auth: "private_key_jwt"}, want: InvalidClientMetadata},
		"other grant types":   {m: Metadata{RedirectURIs: good, GrantTypes: []string{"client_credentials"}}, want: InvalidClientMetadata},
		"other response type": {m: Metadata{RedirectURIs: good, ResponseTypes: []string{"token"}}, want: InvalidClientMetadata},
	} {
		got, err := c.m.Registrant()
		wantCode(t, name, err, c.want)
		if got.Auth != c.auth {
			t.Errorf("%s: got the method %q, want %q", name, got.Auth, c.auth)
		}
	}
}

func TestRegistrant_CleansTheNameAndDropsUnknownScopes(t *testing.T) {
	t.Parallel()
	c, err := Metadata{
		RedirectURIs: []string{"https://client.example/cb"}, Name: " \u202eevil\x00\n name " + strings.Repeat("x", 300),
		URI: "javascript:alert(1)", Scope: "openid mcp:read profile",
	}.Registrant()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(c.Name, "evil name x") || len(c.Name) != maxName || c.URI != "" || c.Scopes.String() != "mcp:read" {
		t.Errorf("got name %q, URI %q and scopes %q", c.Name, c.URI, c.Scopes)
	}
	unnamed, err := Metadata{RedirectURIs: []string{"cursor://host/cb"}, Name: "\u200b"}.Registrant()
	if err != nil || unnamed.Name != "cursor://host" || !slices.Equal(unnamed.Scopes, AllScopes()) {
		t.Errorf("got name %q and scopes %q, %v; want the place that the code goes to and all scopes", unnamed.Name, unnamed.Scopes, err)
	}
}

func TestDocumented(t *testing.T) {
	t.Parallel()
	const address = "https://client.example/oauth.json"
	m := Metadata{ClientID: address, Name: "C", RedirectURIs: []string{"https://client.example/cb"}}
	c, err := m.Documented(address)
	if err != nil || c.ClientID != address || c.Auth != AuthNone || c.Kind != ClientDocument {
		t.Errorf("got %+v, %v; want a public client", c, err)
	}
	for name, change := range map[string]func(m *Metadata){
		"another id":        func(m *Metadata) { m.ClientID += "/" },
		"no id":             func(m *Metadata) { m.ClientID = "" },
		"a secret":          func(m *Metadata) { m.Auth = "client_secret_basic" },
		"a bad redirection": func(m *Metadata) { m.RedirectURIs = []string{"http://client.example/cb"} },
	} {
		bad := m
		change(&bad)
		_, err := bad.Documented(address)
		wantCode(t, name, err, InvalidClient)
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := Client{Name: "C", Auth: AuthNone, Scopes: AllScopes(), RedirectURIs: []string{"http://localhost:1/cb", "https://client.example/cb"}}
	same, other := base, base
	same.RedirectURIs = []string{"https://client.example/cb", "http://localhost:9999/cb"}
	other.RedirectURIs = []string{"http://localhost:1/cb", "https://client.example/other"}
	if !bytes.Equal(base.Fingerprint(), same.Fingerprint()) || bytes.Equal(base.Fingerprint(), other.Fingerprint()) {
		t.Error("the order and the ports must not count, and everything else must")
	}
}

func TestIsDocumentURL(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"https://client.example/oauth.json": true, "https://client.example:8443/a?b=c": true,
		"https://client.example": false, "https://client.example/": false, "http://client.example/oauth.json": false,
		"https://client.example/../x": false, "https://client.example/./x": false, "https://client.example/%2e%2e/x": false,
		"https://user@client.example/x": false, "https://client.example/x#y": false, "https:///x": false, "ccl_x": false,
		"https://client.example/\u202e": false, "": false, "HTTPS://client.example/x": false,
	} {
		if got := IsDocumentURL(id); got != want {
			t.Errorf("%q: got %v, want %v", id, got, want)
		}
	}
}

func TestCheckResource(t *testing.T) {
	t.Parallel()
	const base = "https://crier.example"
	for _, sent := range [][]string{
		nil, {"https://crier.example/mcp"}, {"https://crier.example"}, {"https://crier.example/"}, {"https://CRIER.example/mcp/"},
		{"HTTPS://crier.example/mcp", "https://crier.example"},
	} {
		if got, err := CheckResource(base, sent...); err != nil || got != base+"/mcp" {
			t.Errorf("%q: got %q, %v; want the endpoint", sent, got, err)
		}
	}
	for _, sent := range [][]string{
		{""}, {"https://evil.example/mcp"}, {"https://crier.example/MCP"}, {"https://crier.example/mcp/x"}, {"http://crier.example/mcp"},
		{"https://crier.example/mcp#x"}, {"https://crier.example/mcp?x"}, {"https://x@crier.example/mcp"}, {"https://crier.example//"},
		{"https://crier.example/mcp", "https://evil.example"}, {"https://crier.example.evil.example/mcp"}, {"crier.example/mcp"},
	} {
		_, err := CheckResource(base, sent...)
		wantCode(t, strings.Join(sent, " "), err, InvalidTarget)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	// RFC 7636, appendix B.
	const verifier, challenge = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	if !Verify(challenge, verifier) || !IsChallenge(challenge) {
		t.Error("the example of the RFC is refused")
	}
	for _, bad := range []string{"", verifier[1:], verifier + "x", challenge, strings.Repeat("x", 129)} {
		if Verify(challenge, bad) {
			t.Errorf("%q is accepted, want it refused", bad)
		}
	}
	for _, bad := range []string{"", "x", challenge + "=", challenge[1:], challenge + "x", verifier[:42] + "!"} {
		if IsChallenge(bad) {
			t.Errorf("%q is a challenge, want it refused", bad)
		}
	}
}
