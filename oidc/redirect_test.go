package oidc

import (
	"errors"
	"strings"
	"testing"
)

// wantCode fails the test unless the error has the code, which is "" for no error.
func wantCode(t *testing.T, what string, err error, want Code) {
	t.Helper()
	var got *Error
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: got %v, want no error", what, err)
	case want != "" && (!errors.As(err, &got) || got.Code != want || got.Message == ""):
		t.Errorf("%s: got %v, want %s with a message", what, err, want)
	}
}

func TestCheckRedirectURI(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{
		"https://client.example/callback", "https://client.example:8443/cb?x=1&y=%20", "https://client.example",
		"http://localhost/cb", "http://localhost:3334/oauth/callback", "http://127.0.0.1:0/", "http://[::1]:9/cb",
		"http://localhost", "HTTP://localhost/cb", "cursor://anysphere.cursor-retrieval/oauth/user-abc/callback",
		"com.example.app:/cb", "com.example.app:cb", "vscode://vscode.github-authentication/did-authenticate",
		"com.raycast:/oauth?package_name=Extension", "https://xn--bcher-kva.example/",
	} {
		wantCode(t, uri, CheckRedirectURI(uri), "")
	}
	for _, uri := range []string{
		"", "/cb", "client.example/cb", "//client.example/cb", "https:///cb", "https://", "https:cb", "cursor://", "cursor:",
		"http://client.example/cb", "http://localhost.example/cb", "http://127.0.0.2/cb", "http://[::2]/cb",
		"http://0.0.0.0/cb", "http://LOCALHOST.evil/", "http://2130706433/", "http://localhost@evil.example/",
		"https://client.example/cb#", "https://client.example/cb#x", "com.example.app:/cb#x",
		"https://user@client.example/cb", "https://user:pass@client.example/cb", "cursor://user@host/cb",
		"javascript:alert(1)", "JavaScript://client.example/%0aalert(1)", "data:text/html,x", "vbscript:x",
		"file:///etc/passwd", "blob:https://client.example/x", "intent://x#Intent;end", "android-app://com.example", "ms-word:ofe|u|https://x", "ms-officecmd:x", "powershell:x", "microsoft-edge:https://x", "about:blank", "ws://localhost/",
		"wss://client.example/", "ftp://client.example/", "mailto:a@example.com", "view-source:https://client.example/",
		"https://client.example\\@evil.example/", "https://client.example/c b", "https://client.example/\x00",
		"https://client.example/\n", "\thttps://client.example/", "https://client.example/\u202e", "https://bücher.example/",
		"https://client.example/\"><script>", "https://client.example/%zz", "https://client.example:x/",
		"https://client.example/" + strings.Repeat("x", maxURI),
	} {
		wantCode(t, uri, CheckRedirectURI(uri), InvalidRedirectURI)
	}
}

func TestCheckRedirectURIs_LimitsTheirNumber(t *testing.T) {
	t.Parallel()
	many := make([]string, MaxRedirectURIs+1)
	for i := range many {
		many[i] = "https://client.example/" + strings.Repeat("x", i)
	}
	wantCode(t, "none", CheckRedirectURIs(nil), InvalidRedirectURI)
	wantCode(t, "the maximum", CheckRedirectURIs(many[1:]), "")
	wantCode(t, "too many", CheckRedirectURIs(many), InvalidRedirectURI)
	wantCode(t, "one is bad", CheckRedirectURIs([]string{many[0], "data:x"}), InvalidRedirectURI)
}

func TestMatchRedirect(t *testing.T) {
	t.Parallel()
	c := Client{RedirectURIs: []string{
		"https://client.example/cb", "http://localhost:1/cb", "http://127.0.0.1/cb?x=1", "http://[::1]:2/", "cursor://host/cb",
	}}
	for _, sent := range []string{
		"https://client.example/cb", "http://localhost:1/cb", "http://localhost:65000/cb", "http://localhost/cb",
		"http://127.0.0.1:80/cb?x=1", "http://[::1]/", "http://[::1]:3/", "cursor://host/cb",
	} {
		if !c.MatchRedirect(sent) {
			t.Errorf("%s does not match, want a match", sent)
		}
	}
	for _, sent := range []string{
		"", "https://client.example/cb/", "https://client.example/CB", "https://client.example:443/cb",
		"https://Client.example/cb", "https://client.example/cb?", "https://client.example/%63b",
		"https://client.example/cbx", "https://client.example/c", "https%3A%2F%2Fclient.example%2Fcb",
		"https://client.example/cbhttps://client.example/cb", "https://client.example/../cb", "https://evil.example/cb",
		"http://127.0.0.1:1/cb", "http://localhost:1/cb/", "http://localhost:1/cb?x", "http://localhost:1@evil.example/cb",
		"http://localhost:70000x/cb", "http://localhost:1/%63b", "https://localhost:1/cb", "http://127.0.0.1/cb",
		"cursor://host:1/cb", "http://localhost.evil.example:1/cb", "http://localhost:1\\@evil.example/cb",
	} {
		if c.MatchRedirect(sent) {
			t.Errorf("%s matches, want no match", sent)
		}
	}
}
