package agents

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// known is what a widely used client registers and sends. The values are those of its
// documentation, its source or its published document.
type known struct {
	name string
	// registers is the body of its dynamic registration, or nil if it does not register.
	registers m
	// document is what it publishes at the URL that is its client id, or nil if it has none.
	document m
	// redirects are the redirect URIs that it sends to the authorization endpoint. The port of a
	// loopback address can differ from the registered one, or be missing there.
	redirects []string
	// scope is what it asks for, or "" if it sends none.
	scope string
	// extra are further parameters of the authorization request.
	extra url.Values
	// method is how it authenticates at the token endpoint with a document.
	method string
	// omitsResource is set if it omits resource when it refreshes.
	omitsResource bool
}

const (
	bothScopes = "mcp:read mcp:write"
	allScopes  = "mcp:read mcp:write offline_access"
	deviceCode = "urn:ietf:params:oauth:grant-type:device_code"
)

var (
	refreshing = []string{"authorization_code", "refresh_token"}
	code       = []string{"code"}
)

var knownClients = []known{
	{
		name: "Claude", scope: bothScopes, redirects: []string{"https://claude.ai/api/mcp/auth_callback"},
		registers: m{
			"client_name": "Claude", "redirect_uris": []string{"https://claude.ai/api/mcp/auth_callback"}, "grant_types": refreshing,
			"response_types": code, "token_endpoint_auth_method": "none", "scope": bothScopes,
		},
		document: m{
			"client_name": "Claude", "client_uri": "https://claude.ai", "redirect_uris": []string{"https://claude.ai/api/mcp/auth_callback"},
			"grant_types": refreshing, "response_types": code, "token_endpoint_auth_method": "none",
		},
	},
	{
		// Older installations keep a secret.
		name: "Claude with a secret", scope: bothScopes, redirects: []string{"https://claude.com/api/mcp/auth_callback"},
		registers: m{
			"client_name":   "Claude",
			"redirect_uris": []string{"https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"},
			"grant_types":   refreshing, "response_types": code, "token_endpoint_auth_method": "client_secret_post", "scope": "claudeai",
		},
	},
	{
		name: "Claude Code", scope: allScopes,
		redirects: []string{"http://localhost:54545/callback", "http://127.0.0.1:61234/callback", "http://localhost/callback"},
		registers: m{
			"client_name":   "Claude Code (crier)",
			"redirect_uris": []string{"http://localhost:54545/callback", "http://127.0.0.1:54545/callback"},
			"grant_types":   refreshing, "response_types": code, "token_endpoint_auth_method": "none", "scope": bothScopes,
		},
		document: m{
			"client_name": "Claude Code", "client_uri": "https://claude.ai",
			"redirect_uris": []string{"http://localhost/callback", "http://127.0.0.1/callback"},
			"grant_types":   refreshing, "response_types": code, "token_endpoint_auth_method": "none",
		},
	},
	{
		name: "ChatGPT", scope: bothScopes, redirects: []string{"https://chatgpt.com/connector_platform_oauth_redirect"},
		registers: m{
			"client_name": "ChatGPT", "redirect_uris": []string{"https://chatgpt.com/connector_platform_oauth_redirect"},
			"grant_types": refreshing, "response_types": code, "token_endpoint_auth_method": "client_secret_basic",
		},
		// The document names a method that is not in the server's metadata, but also lists none.
		document: m{
			"client_name": "ChatGPT", "client_uri": "https://chatgpt.com/",
			"redirect_uris":              []string{"https://chatgpt.com/connector_platform_oauth_redirect"},
			"token_endpoint_auth_method": "private_key_jwt", "token_endpoint_auth_methods_supported": []string{"none", "private_key_jwt"},
			"token_endpoint_auth_signing_alg": "RS256", "jwks_uri": "https://chatgpt.com/oauth/jwks.json",
			"logo_uri":    "https://persistent.oaistatic.com/sonic/misc/openai-logo.png",
			"grant_types": refreshing, "response_types": code,
		},
	},
	{
		name: "ChatGPT with an address for each connector", redirects: []string{"https://chatgpt.com/connector/oauth/cb_0123456789"},
		registers: m{
			"client_name": "ChatGPT", "redirect_uris": []string{"https://chatgpt.com/connector/oauth/cb_0123456789"},
			"grant_types": refreshing, "response_types": code, "token_endpoint_auth_method": "none",
		},
	},
	{
		name: "Visual Studio Code", scope: bothScopes, redirects: []string{"http://127.0.0.1:33418/", "https://vscode.dev/redirect"},
		registers: m{
			"client_name": "Visual Studio Code", "client_uri": "https://code.visualstudio.com",
			"redirect_uris": []string{
				"https://insiders.vscode.dev/redirect", "https://vscode.dev/redirect", "http://127.0.0.1/", "http://127.0.0.1:33418/",
			},
			"grant_types": append(slices.Clone(refreshing), deviceCode), "response_types": code,
			"token_endpoint_auth_method": "none", "application_type": "native", "scope": bothScopes,
		},
		document: m{
			"client_name": "Visual Studio Code", "client_uri": "https://vscode.dev/product",
			"logo_uri":      "https://code.visualstudio.com/assets/branding/code-stable.png",
			"redirect_uris": []string{"http://127.0.0.1:33418/", "https://vscode.dev/redirect"},
			"grant_types":   append(slices.Clone(refreshing), deviceCode), "response_types": code,
			"token_endpoint_auth_method": "none", "application_type": "native",
		},
	},
	{
		name: "Cursor", scope: bothScopes,
		redirects: []string{
			"cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback",
		},
		registers: m{
			"client_name": "Cursor",
			"redirect_uris": []string{
				"cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/agents/mcp/oauth/callback",
				"http://localhost:8787/callback",
			},
			"grant_types": refreshing, "response_types": code, "token_endpoint_auth_method": "none",
		},
	},
	{
		// It refreshes without a resource.
		name: "Codex", redirects: []string{"http://127.0.0.1:41999/callback"}, omitsResource: true,
		registers: m{
			"client_name": "Codex", "redirect_uris": []string{"http://127.0.0.1:40123/callback"}, "grant_types": refreshing,
			"response_types": code, "token_endpoint_auth_method": "none", "scope": "",
		},
		document: m{
			"client_name": "Codex", "client_uri": "https://chatgpt.com/codex",
			"redirect_uris": []string{"http://127.0.0.1/callback", "http://localhost/callback"},
			"grant_types":   refreshing, "response_types": code, "token_endpoint_auth_method": "none",
		},
	},
	{
		name: "OpenCode", scope: bothScopes,
		redirects: []string{"http://127.0.0.1:19876/mcp/oauth/callback"},
		registers: m{
			"client_name": "OpenCode", "client_uri": "https://opencode.ai",
			"redirect_uris": []string{"http://127.0.0.1:19876/mcp/oauth/callback"}, "grant_types": refreshing,
			"response_types": code, "token_endpoint_auth_method": "none", "scope": bothScopes,
		},
	},
	{
		name: "OpenCode's document", scope: bothScopes, redirects: []string{"http://127.0.0.1:19876/callback"},
		document: m{
			"client_name": "OpenCode", "client_uri": "https://opencode.ai",
			"redirect_uris": []string{"http://127.0.0.1/callback", "http://localhost/callback"},
			"grant_types":   refreshing, "response_types": code, "token_endpoint_auth_method": "none",
		},
	},
	{
		// It does not say how it authenticates. With a document it first sends Basic without a
		// secret.
		name: "Go SDK", scope: allScopes, redirects: []string{"http://localhost:3142"}, method: "client_secret_basic",
		registers: m{
			"client_name": "Go MCP client", "redirect_uris": []string{"http://localhost:3142"}, "application_type": "native",
			"grant_types": refreshing,
		},
		document: m{
			"client_name": "Go MCP client", "redirect_uris": []string{"http://localhost:3142"}, "grant_types": refreshing,
			"response_types": code, "token_endpoint_auth_method": "none",
		},
	},
	{
		// It states only where it listens, and that it is a web application.
		name: "a client with the defaults", redirects: []string{"http://[::1]:9999/callback?from=crier"},
		registers: m{"redirect_uris": []string{"http://[::1]:4567/callback?from=crier"}, "application_type": "web"},
		extra:     url.Values{"prompt": {"consent"}, "access_type": {"offline"}, "nonce": {"x"}},
	},
}

// documents is a server of metadata documents, keyed by path.
type documents struct {
	*httptest.Server
	mu  sync.Mutex
	all map[string]http.HandlerFunc
}

func (d *documents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	serve := d.all[r.URL.Path]
	d.mu.Unlock()
	if serve == nil {
		http.NotFound(w, r)
		return
	}
	serve(w, r)
}

// serve serves whatever the handler does at a path, and returns the address.
func (d *documents) serve(path string, handler http.HandlerFunc) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all[path] = handler
	return d.URL + path
}

// publish serves a document with its own address as the client id, and returns the address.
func (d *documents) publish(t testing.TB, path string, document m) string {
	t.Helper()
	document = maps.Clone(document)
	document["client_id"] = d.URL + path
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return d.serve(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "public, max-age=300")
		_, _ = w.Write(text) // the service reports what is missing
	})
}

// startWithDocuments runs a service that trusts the certificate of a server of documents.
func startWithDocuments(t testing.TB) (*service, *documents) {
	t.Helper()
	d := &documents{all: map[string]http.HandlerFunc{}}
	d.Server = httptest.NewTLSServer(d)
	t.Cleanup(d.Close)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.Certificate().Raw})
	if err := os.WriteFile(roots, certificate, 0o644); err != nil {
		t.Fatal(err)
	}
	return start(t, map[string]string{"OUTBOUND_ALLOW": strings.TrimPrefix(d.URL, "https://"), "SSL_CERT_FILE": roots}), d
}

func TestClients(t *testing.T) {
	t.Parallel()
	s, documents := startWithDocuments(t)
	p := s.owner(t)
	for _, k := range knownClients {
		t.Run(strings.ReplaceAll(k.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			if k.registers != nil {
				t.Run("registers", func(t *testing.T) { k.run(t, p, s.register(t, k.registers)) })
			}
			if k.document != nil {
				t.Run("has a document", func(t *testing.T) {
					id := documents.publish(t, "/"+unique("client-")+"/metadata.json", k.document)
					method := k.method
					if method == "" {
						method = "none"
					}
					k.run(t, p, &app{s: s, id: id, method: method, name: k.name, address: address()})
				})
			}
		})
	}
}

// run makes the client's requests from authorization to a refresh, for each of its redirects.
func (k known) run(t *testing.T, p *person, a *app) {
	t.Helper()
	for _, redirect := range k.redirects {
		if k.registers != nil && a.s != nil && !strings.HasPrefix(a.id, "https://") && redirect == "http://localhost/callback" {
			continue // the address without a port is what the document has
		}
		a := *a
		a.redirect = redirect
		r := a.request(func(q url.Values) {
			if k.scope != "" {
				q.Set("scope", k.scope)
			}
			maps.Copy(q, k.extra)
		})
		got := good(t, a.token(t, r.exchangeForm(p.approve(t, r, nil))))
		for _, scope := range []string{"mcp:read", "mcp:write"} {
			if !slices.Contains(strings.Fields(got.Scope), scope) {
				t.Errorf("%s at %s: got the scope %q, want %s in it", k.name, redirect, got.Scope, scope)
			}
		}
		checkNames(t, agent{base: p.s.base, token: got.Access}.tools(t))
		form := a.refreshForm(got.Refresh)
		if k.omitsResource {
			form.Del("resource")
		}
		next := good(t, a.token(t, form))
		if next.Access == got.Access {
			t.Errorf("%s: a refresh returned the same access token", k.name)
		}
		checkNames(t, agent{base: p.s.base, token: next.Access}.tools(t))
	}
}

// TestClients_RegisterAgain checks that the same public metadata gives the same client, and that
// many people of a hosted client can register from one address.
func TestClients_RegisterAgain(t *testing.T) {
	t.Parallel()
	s := common(t)
	body := metadata(unique("Hosted "), "https://hosted.example/callback")
	var first registered
	from := address()
	for i := range 60 {
		var got registered
		if err := s.post(t, "/oauth/register", from, body).Into(&got); err != nil {
			t.Fatalf("registration %d from one address: got %v, want a success", i+1, err)
		}
		if i == 0 {
			first = got
		}
		if got.ID != first.ID || got.Secret != "" {
			t.Fatalf("registration %d: got the client %+v, want %+v", i+1, got, first)
		}
	}
	other := metadata(unique("Other "), "https://hosted.example/callback")
	if got := s.register(t, other); got.id == first.ID {
		t.Error("another name got the same client")
	}
}

// TestClients_TokenEndpointTakesEveryForm checks the encodings and the ways to authenticate.
func TestClients_TokenEndpointTakesEveryForm(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	public := s.native(t)
	asJSON := func(form url.Values) m {
		out := m{}
		for name := range form {
			out[name] = form.Get(name)
		}
		return out
	}
	r := public.request(nil)
	form := r.exchangeForm(p.approve(t, r, nil))
	form.Set("client_id", public.id)
	got := good(t, s.post(t, "/oauth/token", public.address, asJSON(form)))
	form = public.refreshForm(got.Refresh)
	empty := "Basic " + base64.StdEncoding.EncodeToString([]byte(public.id+":"))
	good(t, s.post(t, "/oauth/token", public.address, form, "Authorization", empty))

	for _, method := range []string{"client_secret_basic", "client_secret_post"} {
		body := metadata(unique("Secret "), "https://secret.example/callback")
		body["token_endpoint_auth_method"] = method
		a := s.register(t, body)
		if a.secret == "" || a.method != method {
			t.Fatalf("%s: got %+v, want a secret", method, a)
		}
		p.grant(t, a, nil)
		wrong := *a
		wrong.secret += "x"
		r := a.request(nil)
		code := p.approve(t, r, nil)
		if got := wrong.token(t, r.exchangeForm(code)); got.Status != http.StatusUnauthorized || refused(got) != "invalid_client" {
			t.Errorf("%s with a wrong secret: got %v, want 401 invalid_client", method, got)
		}
		good(t, a.token(t, r.exchangeForm(code)))
	}
	gone := *public
	gone.id = "ccl_" + strings.Repeat("a", 43)
	if got := gone.token(t, gone.refreshForm("crt_x")); got.Status != http.StatusUnauthorized || refused(got) != "invalid_client" {
		t.Errorf("an unknown client: got %v, want 401 invalid_client", got)
	}
}

// TestClients_Discover checks what clients read before they register.
func TestClients_Discover(t *testing.T) {
	t.Parallel()
	s := common(t)
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		p := &person{s: s, address: address()}
		a := p.ask(t, method, "/mcp", nil)
		challenge := a.Header.Get("WWW-Authenticate")
		for _, part := range []string{"Bearer ", `resource_metadata="` + s.base + `/.well-known/oauth-protected-resource/mcp"`, `scope="`} {
			if a.Status != http.StatusUnauthorized || !strings.Contains(challenge, part) {
				t.Errorf("%s /mcp: got %d with the challenge %q, want 401 and %s", method, a.Status, challenge, part)
			}
		}
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"} {
		var got struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
			Methods  []string `json:"bearer_methods_supported"`
		}
		a := s.get(t, path, "Origin", "https://client.example")
		if err := a.Into(&got); err != nil || got.Resource != s.base+"/mcp" || !slices.Equal(got.Servers, []string{s.base}) ||
			!slices.Contains(got.Scopes, "mcp:read") || !slices.Contains(got.Scopes, "mcp:write") || !slices.Equal(got.Methods, []string{"header"}) ||
			a.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: got %v %v, want the resource and its server, for any origin", path, a, a.Header)
		}
	}
	var got map[string]any
	a := s.get(t, "/.well-known/oauth-authorization-server", "Origin", "https://client.example")
	if err := a.Into(&got); err != nil || a.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Fatalf("the metadata: got %v %v, want it for any origin", a, a.Header)
	}
	for name, want := range map[string]any{
		"issuer": s.base, "client_id_metadata_document_supported": true, "authorization_response_iss_parameter_supported": true,
		"response_types_supported": []any{"code"}, "code_challenge_methods_supported": []any{"S256"},
	} {
		if wanted, _ := json.Marshal(want); !sameJSON(got[name], wanted) {
			t.Errorf("the metadata: got %s = %v, want %s", name, got[name], wanted)
		}
	}
	for name, values := range map[string][]string{
		"grant_types_supported":                 refreshing,
		"token_endpoint_auth_methods_supported": {"none", "client_secret_basic", "client_secret_post"},
		"scopes_supported":                      {"mcp:read", "mcp:write", "offline_access"},
	} {
		for _, v := range values {
			if list, _ := got[name].([]any); !slices.Contains(list, any(v)) {
				t.Errorf("the metadata: got %s = %v, want %s in it", name, got[name], v)
			}
		}
	}
	// Every endpoint that the metadata names exists.
	for name, value := range got {
		if address, ok := value.(string); ok && strings.HasSuffix(name, "_endpoint") {
			path, ours := strings.CutPrefix(address, s.base)
			if !ours {
				t.Errorf("the metadata: %s is %s, want an address of %s", name, address, s.base)
				continue
			}
			if a := s.post(t, path, "203.0.113.5", url.Values{}); a.Status == http.StatusNotFound || a.Status >= 500 {
				t.Errorf("POST %s, which the metadata names: got %v", path, a)
			}
		}
	}
}

// sameJSON reports whether a value is the same as a JSON text.
func sameJSON(v any, text []byte) bool {
	got, err := json.Marshal(v)
	return err == nil && string(got) == string(text)
}
