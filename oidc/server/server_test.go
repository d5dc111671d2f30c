package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"crier/oidc"
	"crier/oidc/server"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
)

const documentID = "https://client.example/oauth.json"

// fake implements the ports. It knows the public clients "public" and documentID, the client
// "secret" with the secret "s+/=", and the key "crier_key".
type fake struct {
	code    oidc.CodeRequest
	refresh string
	revoked string
	client  oidc.Client
	err     error
	org     tenancy.OrgID
}

func (f *fake) Authenticate(_ context.Context, clientID, secret string) (oidc.Client, error) {
	known := map[string]string{"public": "", documentID: "", "secret": "s+/="}
	if want, ok := known[clientID]; !ok || want != secret {
		return oidc.Client{}, oidc.Fail(oidc.InvalidClient, "unknown")
	}
	return oidc.Client{ClientID: clientID, Auth: oidc.AuthNone}, nil
}

func (f *fake) Exchange(_ context.Context, c oidc.Client, r oidc.CodeRequest) (oidc.Tokens, error) {
	f.client, f.code = c, r
	return f.tokens(), f.err
}

func (f *fake) Refresh(_ context.Context, c oidc.Client, refresh string) (oidc.Tokens, error) {
	f.client, f.refresh = c, refresh
	return f.tokens(), f.err
}

func (f *fake) tokens() oidc.Tokens {
	return oidc.Tokens{Access: "cra_x", Refresh: "crt_x", ExpiresIn: time.Hour, Scopes: oidc.AllScopes(), Org: f.org}
}

func (f *fake) RevokeToken(_ context.Context, c oidc.Client, token string) error {
	f.client, f.revoked = c, token
	return f.err
}

func (f *fake) Introspect(_ context.Context, c oidc.Client, token string) (oidc.Introspection, error) {
	f.client = c
	return f.IntrospectFor(context.Background(), tenancy.Principal{}, token)
}

func (f *fake) IntrospectFor(_ context.Context, _ tenancy.Principal, token string) (oidc.Introspection, error) {
	return oidc.Introspection{
		Active: token == "good", Scopes: oidc.Scopes{oidc.ScopeRead}, ClientID: "public", Org: f.org, Resource: "https://crier.test/mcp",
		Issued: time.Unix(100, 0),
	}, f.err
}

// keys implements server.Keys.
type keys struct{}

func (keys) Authenticate(_ context.Context, authorization string) (tenancy.Principal, error) {
	if authorization != "crier_key" {
		return tenancy.Principal{}, fault.New(fault.Unauthenticated, "test", "no")
	}
	return tenancy.Principal{}, nil
}

// call sends a request and returns the status, the headers and the JSON of the answer.
func (f *fake) call(t *testing.T, path, kind, body string, headers ...string) (int, http.Header, map[string]any) {
	t.Helper()
	h := server.New(server.Deps{BaseURL: "https://crier.test", Clients: f, Grants: f, Keys: keys{}, Log: slog.New(slog.DiscardHandler)})
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	req.Header.Set("Content-Type", kind)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	out := map[string]any{}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("%s: got %q, want JSON: %v", path, w.Body, err)
	}
	if w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%s: the answer can be cached", path)
	}
	return w.Code, w.Header(), out
}

const (
	form   = "application/x-www-form-urlencoded"
	asJSON = "application/json"
)

func basic(id, secret string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(id, secret)
	return r.Header.Get("Authorization")
}

func TestToken_Code(t *testing.T) {
	t.Parallel()
	const rest = "grant_type=authorization_code&code=crc_x&redirect_uri=cursor%3A%2F%2Fhost%2Fcb&code_verifier=v"
	for name, c := range map[string]struct {
		kind, body string
		headers    []string
		client     string
	}{
		"a form":           {kind: form, body: rest + "&client_id=public", client: "public"},
		"a document's URL": {kind: form, body: rest + "&client_id=" + url.QueryEscape(documentID), client: documentID},
		"a secret in the body": {
			kind: form, body: rest + "&client_id=secret&client_secret=" + url.QueryEscape("s+/="), client: "secret",
		},
		"Basic":                  {kind: form, body: rest, headers: []string{"Authorization", basic("secret", url.QueryEscape("s+/="))}, client: "secret"},
		"Basic without a secret": {kind: form, body: rest, headers: []string{"Authorization", basic("public", "")}, client: "public"},
		"Basic and client_id":    {kind: form, body: rest + "&client_id=public", headers: []string{"Authorization", basic("public", "")}, client: "public"},
		"Basic with an encoded URL": {
			kind: form, body: rest, headers: []string{"Authorization", basic(url.QueryEscape(documentID), "")}, client: documentID,
		},
		"Basic with a plain URL": {kind: form, body: rest, headers: []string{"Authorization", basic(documentID, "")}, client: documentID},
		"Basic with a plain URL and client_id": {
			kind: form, body: rest + "&client_id=" + url.QueryEscape(documentID), headers: []string{"Authorization", basic(documentID, "")}, client: documentID,
		},
		"JSON": {
			kind:   "application/json; charset=utf-8",
			body:   `{"grant_type":"authorization_code","code":"crc_x","redirect_uri":"cursor://host/cb","code_verifier":"v","client_id":"public","client_secret":null,"resource":["https://crier.test/mcp"]}`,
			client: "public",
		},
	} {
		f := &fake{org: id.New[tenancy.OrgTag]()}
		status, _, got := f.call(t, server.TokenPath, c.kind, c.body, c.headers...)
		want := map[string]any{
			"access_token": "cra_x", "refresh_token": "crt_x", "token_type": "bearer", "expires_in": 3600.0, "cus": nil,
			"scope": "mcp:read mcp:write offline_access", "id": f.org.String(),
		}
		if status != 200 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %d %v, want %v", name, status, got, want)
		}
		if f.client.ClientID != c.client || f.code != (oidc.CodeRequest{Code: "crc_x", RedirectURI: "cursor://host/cb", Verifier: "v"}) {
			t.Errorf("%s: the client %q exchanged %+v", name, f.client.ClientID, f.code)
		}
	}
}

func TestToken_RedirectURIMayBeOmitted(t *testing.T) {
	t.Parallel()
	f := &fake{}
	status, _, got := f.call(t, server.TokenPath, form, "grant_type=authorization_code&code=crc_x&client_id=public&redirect_uri=")
	if status != 200 || f.code != (oidc.CodeRequest{Code: "crc_x"}) {
		t.Errorf("got %d %v and the request %+v", status, got, f.code)
	}
}

func TestToken_Refresh(t *testing.T) {
	t.Parallel()
	f := &fake{}
	status, _, got := f.call(t, server.TokenPath, form, "grant_type=refresh_token&refresh_token=crt_y&client_id=public&scope=mcp%3Aread")
	if status != 200 || f.refresh != "crt_y" || got["access_token"] != "cra_x" {
		t.Errorf("got %d %v and the token %q", status, got, f.refresh)
	}
}

func TestToken_Refusals(t *testing.T) {
	t.Parallel()
	const code = "grant_type=authorization_code&code=crc_x&redirect_uri=https%3A%2F%2Fx%2F"
	for name, c := range map[string]struct {
		kind, body string
		headers    []string
		err        error
		status     int
		want       oidc.Code
		challenge  bool
	}{
		"an unknown client":              {body: code + "&client_id=pruned", status: 401, want: oidc.InvalidClient},
		"an unknown client by Basic":     {body: code, headers: []string{"Authorization", basic("pruned", "")}, status: 401, want: oidc.InvalidClient, challenge: true},
		"a wrong secret":                 {body: code + "&client_id=secret&client_secret=x", status: 401, want: oidc.InvalidClient},
		"a wrong secret by Basic":        {body: code, headers: []string{"Authorization", basic("secret", "x")}, status: 401, want: oidc.InvalidClient, challenge: true},
		"no client":                      {body: code, status: 401, want: oidc.InvalidClient},
		"a Basic header that is not one": {body: code, headers: []string{"Authorization", "Basic !"}, status: 401, want: oidc.InvalidClient, challenge: true},
		"two ways to authenticate":       {body: code + "&client_secret=x", headers: []string{"Authorization", basic("secret", "x")}, status: 400, want: oidc.InvalidRequest},
		"two clients":                    {body: code + "&client_id=public", headers: []string{"Authorization", basic("secret", "x")}, status: 400, want: oidc.InvalidRequest},
		"an assertion":                   {body: code + "&client_id=public&client_assertion=x&client_assertion_type=" + url.QueryEscape("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"), status: 401, want: oidc.InvalidClient},
		"no grant type":                  {body: "client_id=public", status: 400, want: oidc.InvalidRequest},
		"another grant type":             {body: "client_id=public&grant_type=password", status: 400, want: oidc.UnsupportedGrantType},
		"client credentials":             {body: "client_id=secret&client_secret=s%2B%2F%3D&grant_type=client_credentials", status: 400, want: oidc.UnsupportedGrantType},
		"no code":                        {body: "client_id=public&grant_type=authorization_code", status: 400, want: oidc.InvalidRequest},
		"a repeated parameter":           {body: code + "&client_id=public&code=crc_y", status: 400, want: oidc.InvalidRequest},
		"a foreign resource":             {body: code + "&client_id=public&resource=https%3A%2F%2Fevil.example", status: 400, want: oidc.InvalidTarget},
		"one foreign resource":           {body: code + "&client_id=public&resource=https%3A%2F%2Fcrier.test&resource=x", status: 400, want: oidc.InvalidTarget},
		"a foreign resource on refresh":  {body: "grant_type=refresh_token&refresh_token=x&client_id=public&resource=x", status: 400, want: oidc.InvalidTarget},
		"a bad code":                     {body: code + "&client_id=public", err: oidc.Fail(oidc.InvalidGrant, "used"), status: 400, want: oidc.InvalidGrant},
		"no database":                    {body: code + "&client_id=public", err: fault.New(fault.Unavailable, "x", "Try again."), status: 503, want: "server_error"},
		"our fault":                      {body: code + "&client_id=public", err: fault.New(fault.Internal, "x", "secret"), status: 500, want: "server_error"},
		"JSON that is no object":         {kind: asJSON, body: `[]`, status: 400, want: oidc.InvalidRequest},
		"JSON with a number":             {kind: asJSON, body: `{"client_id":1}`, status: 400, want: oidc.InvalidRequest},
		"another type":                   {kind: "text/plain", body: code, status: 400, want: oidc.InvalidRequest},
		"too much":                       {body: code + "&client_id=public&x=" + strings.Repeat("x", 70_000), status: 400, want: oidc.InvalidRequest},
	} {
		if c.kind == "" {
			c.kind = form
		}
		f := &fake{err: c.err}
		status, header, got := f.call(t, server.TokenPath, c.kind, c.body, c.headers...)
		if status != c.status || got["error"] != string(c.want) || got["access_token"] != nil {
			t.Errorf("%s: got %d %v, want %d %s", name, status, got, c.status, c.want)
		}
		if challenge := header.Get("WWW-Authenticate"); (challenge != "") != c.challenge || c.challenge && !strings.HasPrefix(challenge, "Basic ") {
			t.Errorf("%s: got the challenge %q", name, challenge)
		}
		if c.status == 500 && strings.Contains(fmt.Sprint(got), "secret") {
			t.Errorf("%s: the answer reveals the cause: %v", name, got)
		}
	}
}

// Proxies would log parameters in the query.
func TestToken_IgnoresTheQuery(t *testing.T) {
	t.Parallel()
	f := &fake{}
	status, _, got := f.call(t, server.TokenPath+"?client_id=public&grant_type=refresh_token&refresh_token=crt_x", form, "")
	if status != 401 || f.refresh != "" {
		t.Errorf("got %d %v, want the query ignored", status, got)
	}
	w := httptest.NewRecorder()
	server.New(server.Deps{Clients: f, Grants: f, Keys: keys{}, Log: slog.New(slog.DiscardHandler)}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, server.TokenPath, nil))
	if w.Code != 405 || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: got %d, want 405", w.Code)
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	f := &fake{}
	status, _, got := f.call(t, server.RevokePath, form, "token=crt_x&token_type_hint=refresh_token&client_id=public")
	if status != 200 || len(got) != 0 || f.revoked != "crt_x" || f.client.ClientID != "public" {
		t.Errorf("got %d %v for the token %q", status, got, f.revoked)
	}
	if status, _, got := f.call(t, server.RevokePath, form, "token=crt_x&client_id=pruned"); status != 401 || got["error"] != "invalid_client" {
		t.Errorf("an unknown client: got %d %v", status, got)
	}
}

func TestIntrospect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
		active  any
	}{
		"by Basic":               {body: "token=good", headers: []string{"Authorization", basic("secret", "s%2B%2F%3D")}, status: 200, active: true},
		"by post":                {body: "token=good&client_id=secret&client_secret=s%2B%2F%3D", status: 200, active: true},
		"by a key":               {body: "token=good", headers: []string{"Authorization", "crier_key"}, status: 200, active: true},
		"by a key as Bearer":     {body: "token=good", headers: []string{"Authorization", "Bearer crier_key"}, status: 200, active: true},
		"a token that ended":     {body: "token=bad", headers: []string{"Authorization", "crier_key"}, status: 200, active: false},
		"by a wrong key":         {body: "token=good", headers: []string{"Authorization", "crier_other"}, status: 401},
		"by a public client":     {body: "token=good&client_id=public", status: 401},
		"by a wrong secret":      {body: "token=good&client_id=secret&client_secret=x", status: 401},
		"without authentication": {body: "token=good", status: 401},
		"without a token":        {body: "", headers: []string{"Authorization", "crier_key"}, status: 400},
	} {
		f := &fake{org: id.New[tenancy.OrgTag]()}
		status, _, got := f.call(t, server.IntrospectPath, form, c.body, c.headers...)
		if status != c.status || got["active"] != c.active {
			t.Errorf("%s: got %d %v, want %d and active %v", name, status, got, c.status, c.active)
		}
		if c.active == true && (got["client_id"] != "public" || got["scope"] != "mcp:read" || got["org_id"] != f.org.String() ||
			got["aud"] != "https://crier.test/mcp" || got["iss"] != "https://crier.test" || got["iat"] != 100.0 || got["exp"] != nil) {
			t.Errorf("%s: got %v", name, got)
		}
		if c.active == false && len(got) != 1 {
			t.Errorf("%s: got %v, want nothing else", name, got)
		}
	}
}
