package oauth_test

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"crier/oidc"
	"crier/tests/edgetest"
)

const planner = "https://planner.test/callback"

func TestMetadata_ListsOnlyWhatWorks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/mcp"} {
		a := r.Call(t, "GET", path, "")
		edgetest.Want(t, a, 200, `"issuer":"http://crier.test"`, `"authorization_endpoint":"http://crier.test/oauth/authorize"`,
			`"client_id_metadata_document_supported":true`, `"authorization_response_iss_parameter_supported":true`,
			`"scopes_supported":["mcp:read","mcp:write","offline_access"]`, `"code_challenge_methods_supported":["S256"]`,
			`"grant_types_supported":["authorization_code","refresh_token"]`, `"response_types_supported":["code"]`,
			`"token_endpoint_auth_methods_supported":["none","client_secret_basic","client_secret_post"]`)
		if a.Header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(a.Header.Get("Cache-Control"), "max-age=3600") {
			t.Errorf("%s: got the headers %v", path, a.Header)
		}
		if strings.Contains(a.Body, "openid") || strings.Contains(a.Body, "jwks") {
			t.Errorf("%s promises what does not work: %s", path, a.Body)
		}
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		a := r.Call(t, "GET", path, "", "Origin", "https://inspector.test")
		edgetest.Want(t, a, 200, `"resource":"http://crier.test/mcp"`, `"authorization_servers":["http://crier.test"]`,
			`"bearer_methods_supported":["header"]`)
		if got := a.Header.Values("Access-Control-Allow-Origin"); len(got) != 1 || got[0] != "*" {
			t.Errorf("%s: Access-Control-Allow-Origin is %q, want *", path, got)
		}
	}
}

func TestCORS_ClientsInBrowsersMayCall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, path := range []string{"/oauth/token", "/oauth/register", "/oauth/userinfo", "/.well-known/oauth-authorization-server"} {
		a := r.Call(t, "OPTIONS", path, "", "Origin", "https://inspector.test", "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", "authorization,mcp-protocol-version")
		if a.Status != 204 || a.Header.Get("Access-Control-Allow-Origin") != "*" ||
			!strings.Contains(a.Header.Get("Access-Control-Allow-Headers"), "mcp-protocol-version") ||
			a.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: answered %d %v, want 204 for all origins, without credentials", path, a.Status, a.Header)
		}
	}
	a := r.Call(t, "GET", "/oauth/authorize?"+request(), "", "Origin", "https://inspector.test")
	if got := a.Header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("the page has Access-Control-Allow-Origin %q, want none", got)
	}
}

func TestAuthorize_DescribesClientToPrograms(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, accept := range []string{"", "*/*", "application/json"} {
		a := r.Call(t, "GET", "/oauth/authorize?"+request(), "", "Accept", accept)
		edgetest.Want(t, a, 200, `"app":{"name":"Planner","description":"","picture":null,"clientId":"ccl_public",`+
			`"redirectUrl":"https://planner.test/callback?from=crier"}`, `"state":"the state"`)
	}
}

// TestAuthorize_UntrustedTargetGetsPage: nothing may lead the browser away before the client and
// its redirect URI are known.
func TestAuthorize_UntrustedTargetGetsPage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, query := range map[string]string{
		"no client":                request("client_id", ""),
		"an unknown client":        request("client_id", "ccl_other", "redirect_uri", "https://evil.test/"),
		"no redirect URI":          request("redirect_uri", ""),
		"another host":             request("redirect_uri", "https://evil.test/callback"),
		"a longer host":            request("redirect_uri", "https://planner.test.evil.test/callback?from=crier"),
		"user information":         request("redirect_uri", "https://planner.test@evil.test/callback?from=crier"),
		"one character more":       request("redirect_uri", "https://planner.test/callback?from=crier2"),
		"another case":             request("redirect_uri", "https://planner.test/Callback?from=crier"),
		"an encoded path":          request("redirect_uri", "https://planner.test/%63allback?from=crier"),
		"encoded twice":            request("redirect_uri", "https%3A%2F%2Fplanner.test%2Fcallback%3Ffrom%3Dcrier"),
		"a path above":             request("redirect_uri", "https://planner.test/callback/../x?from=crier"),
		"a fragment":               request("redirect_uri", "https://planner.test/callback?from=crier#x"),
		"doubled":                  request() + "&redirect_uri=https%3A%2F%2Fevil.test%2F",
		"doubled, same":            request() + "&client_id=ccl_public",
		"a script":                 request("redirect_uri", "javascript:alert(1)"),
		"loopback with https":      request("redirect_uri", "https://127.0.0.1/callback"),
		"loopback by another name": request("redirect_uri", "http://localhost/callback"),
		"loopback, another path":   request("redirect_uri", "http://127.0.0.1:80/other"),
		"loopback, user":           request("redirect_uri", "http://127.0.0.1:80@evil.test/callback"),
		"a long query":             request("state", strings.Repeat("x", 7000)),
		"a broken query":           request() + "&x=%zz",
		"wrong in many ways":       request("client_id", "ccl_other", "response_type", "token", "code_challenge", ""),
	} {
		for _, session := range []string{"", edgetest.UserSession} {
			a := r.browse(t, "/oauth/authorize?"+query, session)
			if a.Status != 400 || a.Header.Get("Location") != "" || strings.Contains(a.Body, "evil.test") ||
				refresh.MatchString(a.Body) || strings.Contains(a.Body, "<form") {
				t.Errorf("%s: got %d to %q: %s", name, a.Status, a.Header.Get("Location"), a.Body)
			}
		}
		a := r.Call(t, "GET", "/oauth/authorize?"+query, "")
		if a.Status != 400 || !strings.Contains(a.Body, `"error":"`) || a.Header.Get("Location") != "" {
			t.Errorf("%s, to a program: got %d %s", name, a.Status, a.Body)
		}
	}
}

func TestAuthorize_LoopbackPortIsFree(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, uri := range []string{"http://127.0.0.1/callback", "http://127.0.0.1:1/callback", "http://127.0.0.1:65535/callback", "cursor://planner/callback"} {
		edgetest.Want(t, r.Call(t, "GET", "/oauth/authorize?"+request("redirect_uri", uri), ""), 200, `"redirectUrl":"`+uri+`"`)
	}
}

func TestAuthorize_ReportsFaultsToClient(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	narrow := edgetest.Clients()["ccl_public"]
	narrow.ClientID, narrow.Scopes = "ccl_narrow", oidc.Scopes{oidc.ScopeRead}
	r.server.SetClient(narrow)
	for _, client := range []oidc.Client{r.server.Known["ccl_public"], narrow} {
		g := edgetest.AGrant()
		g.Client = client
		r.server.Granted = append(r.server.Granted, g)
	}
	for name, c := range map[string]struct{ query, code string }{
		"no response type":     {query: request("response_type", ""), code: "invalid_request"},
		"the implicit flow":    {query: request("response_type", "token"), code: "unsupported_response_type"},
		"a response mode":      {query: request("response_mode", "fragment"), code: "invalid_request"},
		"no challenge":         {query: request("code_challenge", "", "code_challenge_method", ""), code: "invalid_request"},
		"a method alone":       {query: request("code_challenge", ""), code: "invalid_request"},
		"plain":                {query: request("code_challenge_method", "plain"), code: "invalid_request"},
		"no method":            {query: request("code_challenge_method", ""), code: "invalid_request"},
		"a short challenge":    {query: request("code_challenge", "short"), code: "invalid_request"},
		"a padded challenge":   {query: request("code_challenge", challenge[:42]+"="), code: "invalid_request"},
		"a foreign scope":      {query: request("client_id", "ccl_narrow", "scope", "mcp:write"), code: "invalid_scope"},
		"a foreign resource":   {query: request("resource", "https://evil.test/mcp"), code: "invalid_target"},
		"a resource's prefix":  {query: request("resource", "http://crier.test/mcp2"), code: "invalid_target"},
		"a longer host":        {query: request("resource", "http://crier.test.evil.test/mcp"), code: "invalid_target"},
		"a resource's query":   {query: request("resource", "http://crier.test/mcp?x"), code: "invalid_target"},
		"one foreign resource": {query: request("resource", "http://crier.test/mcp") + "&resource=http%3A%2F%2Fevil.test", code: "invalid_target"},
		"a request object":     {query: request("request", "e30.e30."), code: "request_not_supported"},
		"a request's address":  {query: request("request_uri", "https://evil.test/"), code: "request_uri_not_supported"},
		"state twice":          {query: request() + "&state=x", code: "invalid_request"},
		"a challenge twice":    {query: request() + "&code_challenge=" + challenge, code: "invalid_request"},
		"no interaction":       {query: request("prompt", "none"), code: "consent_required"},
		"both prompts":         {query: request("prompt", "none consent"), code: "invalid_request"},
		"first fault counts":   {query: request("response_type", "token", "resource", "https://evil.test/"), code: "unsupported_response_type"},
	} {
		a := r.browse(t, "/oauth/authorize?"+c.query, edgetest.UserSession)
		v := location(t, a, planner)
		if a.Status != http.StatusFound || v.Get("error") != c.code || v.Get("iss") != edgetest.BaseURL || v.Get("from") != "crier" {
			t.Errorf("%s: got %d %v, want %s with iss", name, a.Status, v, c.code)
		}
		if name != "state twice" && v.Get("state") != "the state" {
			t.Errorf("%s: the state is %q", name, v.Get("state"))
		}
		if name == "no interaction" {
			continue
		}
		edgetest.Want(t, r.Call(t, "GET", "/oauth/authorize?"+c.query, ""), 400, `"error":"`+c.code+`"`, `"redirect":"https://planner.test/`)
	}
}

// TestAuthorize_DoesNotRedirectStrangers: anyone can register a client and send a link with a
// fault to people.
func TestAuthorize_DoesNotRedirectStrangers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.server.Granted = []oidc.Grant{edgetest.AGrant()} // for another client
	for name, c := range map[string]struct{ query, session, code string }{
		"no session":                {query: request("response_type", "token"), code: "unsupported_response_type"},
		"a session without a grant": {query: request("response_type", "token"), session: edgetest.UserSession, code: "unsupported_response_type"},
		"impersonating":             {query: request("response_type", "token"), session: edgetest.ImpersonatorSession, code: "unsupported_response_type"},
		"no interaction":            {query: request("prompt", "none"), code: "login_required"},
		"no interaction, no grant":  {query: request("prompt", "none"), session: edgetest.UserSession, code: "consent_required"},
	} {
		a := r.browse(t, "/oauth/authorize?"+c.query, c.session)
		m := regexp.MustCompile(`<a href="([^"]*)">Continue to planner.test</a>`).FindStringSubmatch(a.Body)
		if a.Status != 400 || a.Header.Get("Location") != "" || refresh.MatchString(a.Body) || m == nil {
			t.Errorf("%s: got %d to %q: %s", name, a.Status, a.Header.Get("Location"), a.Body)
			continue
		}
		v := parameters(t, html.UnescapeString(m[1]), planner)
		if v.Get("error") != c.code || v.Get("state") != "the state" || v.Get("iss") != edgetest.BaseURL || v.Get("from") != "crier" {
			t.Errorf("%s: the link has %v, want %s with state and iss", name, v, c.code)
		}
	}
}

func TestAuthorize_AcceptsWhatMeansTheSame(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, c := range map[string]struct{ query, scope string }{
		"no scope":           {query: request(), scope: "mcp:read mcp:write"},
		"unknown scopes":     {query: request("scope", "openid email"), scope: "mcp:read mcp:write"},
		"reading":            {query: request("scope", "mcp:read openid"), scope: "mcp:read"},
		"offline":            {query: request("scope", "mcp:read mcp:write offline_access"), scope: "mcp:read mcp:write offline_access"},
		"the endpoint":       {query: request("resource", "http://crier.test/mcp"), scope: "mcp:read mcp:write"},
		"a slash and a case": {query: request("resource", "HTTP://Crier.TEST/mcp/"), scope: "mcp:read mcp:write"},
		"the base":           {query: request("resource", "http://crier.test"), scope: "mcp:read mcp:write"},
		"the base twice":     {query: request("resource", "http://crier.test/") + "&resource=http%3A%2F%2Fcrier.test%2Fmcp", scope: "mcp:read mcp:write"},
		"an unknown one":     {query: request("nonce", "x", "audience", "y"), scope: "mcp:read mcp:write"},
		"an empty one":       {query: request() + "&resource=&prompt=", scope: "mcp:read mcp:write"},
		"the app, no PKCE":   {query: "client_id=ccl_static&response_type=code", scope: "mcp:read mcp:write"},
		"the app, its URI":   {query: "client_id=ccl_static&response_type=code&redirect_uri=https%3A%2F%2Fnewsroom.test%2Fcallback", scope: "mcp:read mcp:write"},
		"a document":         {query: request("client_id", "https://writer.test/client.json", "redirect_uri", "https://writer.test/callback"), scope: "mcp:read mcp:write"},
		"consent is asked":   {query: request("prompt", "consent"), scope: "mcp:read mcp:write"},
		"the query mode":     {query: request("response_mode", "query"), scope: "mcp:read mcp:write"},
	} {
		a := r.Call(t, "GET", "/oauth/authorize?"+c.query, "")
		var got struct{ Scope string }
		if err := json.Unmarshal([]byte(a.Body), &got); err != nil || a.Status != 200 || got.Scope != c.scope {
			t.Errorf("%s: got %d %s, want the scope %s", name, a.Status, a.Body, c.scope)
		}
	}
}
