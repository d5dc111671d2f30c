package oauth_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"crier/oidc"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tests/edgetest"
)

func TestRegister_AnswersInFormOfRFC7591(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := func(body string, headers ...string) edgetest.Answer {
		t.Helper()
		return r.Call(t, "POST", "/oauth/register", body, append([]string{"Content-Type", "application/json", "Origin", "https://inspector.test"}, headers...)...)
	}
	a := post(`{"client_name":"Claude","redirect_uris":["https://claude.test/cb"],"token_endpoint_auth_method":"none",` +
		`"grant_types":["authorization_code","refresh_token"],"application_type":"native","unknown":{"x":1}}`)
	edgetest.Want(t, a, http.StatusCreated, `"client_id":"ccl_public"`, `"client_name":"Claude"`, `"redirect_uris":["https://claude.test/cb"]`,
		`"token_endpoint_auth_method":"none"`, `"client_id_issued_at":1767323045`, `"scope":"mcp:read mcp:write offline_access"`)
	if strings.Contains(a.Body, "secret") || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("a public client gets %s %v", a.Body, a.Header)
	}
	edgetest.Want(t, post(`{"client_name":"Server","redirect_uris":["https://claude.test/cb"],"token_endpoint_auth_method":"client_secret_basic"}`),
		http.StatusCreated, `"client_secret":"ccs_secret"`, `"client_secret_expires_at":0`)
	if m := r.server.Registered[0]; m.Name != "Claude" || !slices.Equal(m.RedirectURIs, []string{"https://claude.test/cb"}) || m.ApplicationType != "native" {
		t.Errorf("registered %+v", m)
	}
	for name, c := range map[string]struct {
		body, code string
		status     int
	}{
		"no redirect":  {body: `{"client_name":"x"}`, status: 400, code: "invalid_redirect_uri"},
		"no object":    {body: `[]`, status: 400, code: "invalid_client_metadata"},
		"no JSON":      {body: `{`, status: 400, code: "invalid_client_metadata"},
		"another type": {body: `{"redirect_uris":"https://x.test"}`, status: 400, code: "invalid_client_metadata"},
		"a large body": {body: `{"client_name":"` + strings.Repeat("x", 17_000) + `"}`, status: 413, code: "invalid_request"},
		"a flood":      {body: `{"client_name":"flood","redirect_uris":["https://x.test"]}`, status: 429, code: "temporarily_unavailable"},
		"many values":  {body: `{"x":[` + strings.Repeat("1,", 7_900) + `1]}`, status: 400, code: "invalid_redirect_uri"},
	} {
		a := post(c.body)
		edgetest.Want(t, a, c.status, `{"error":"`+c.code+`"`)
		if strings.Contains(a.Body, "statusCode") || c.status == 429 && a.Header.Get("Retry-After") != "60" {
			t.Errorf("%s: got %s %v, want the form of RFC 7591", name, a.Body, a.Header)
		}
	}
	edgetest.Want(t, r.Call(t, "POST", "/oauth/register", "x=y", "Content-Type", "application/x-www-form-urlencoded"), 400, `{"error":"invalid_request"`)
}

func TestToken_PassesFormsAndJSON(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := func(path, kind, body string, headers ...string) edgetest.Answer {
		t.Helper()
		return r.Call(t, "POST", path, body, append([]string{"Content-Type", kind}, headers...)...)
	}
	const formType, jsonType = "application/x-www-form-urlencoded", "application/json"
	a := post("/oauth/token", formType, "grant_type=authorization_code&code=crc_x&resource=a&resource=b", "Authorization", "Basic eDp5", "Origin", "https://inspector.test")
	edgetest.Want(t, a, 200, `{"access_token":"cra_new"}`)
	if a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Pragma") != "no-cache" || a.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("got the headers %v", a.Header)
	}
	edgetest.Want(t, post("/oauth/token", jsonType, `{"grant_type":"authorization_code","code":"crc_x","n":1,"b":true,"gone":null,"resource":["a","b"]}`), 200)
	edgetest.Want(t, post("/oauth/introspect", formType, "token=cra_x", "Authorization", "Basic eDp5"), 200)
	edgetest.Want(t, post("/oauth/revoke", jsonType+"; charset=utf-8", `{"token":"cra_x"}`), 200)
	want := []string{
		"/oauth/token code=crc_x&grant_type=authorization_code&resource=a&resource=b Basic eDp5",
		"/oauth/token b=true&code=crc_x&grant_type=authorization_code&n=1&resource=a&resource=b ",
		"/oauth/introspect token=cra_x Basic eDp5", "/oauth/revoke token=cra_x ",
	}
	if !slices.Equal(r.server.Forms, want) {
		t.Errorf("the token server gets\n%q, want\n%q", r.server.Forms, want)
	}
	a = post("/oauth/token", formType, "grant_type=bad")
	edgetest.Want(t, a, 401, `{"error":"invalid_client"}`)
	if a.Header.Get("WWW-Authenticate") != "Basic" || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got the headers %v", a.Header)
	}
	r.server.Forms = nil
	for name, c := range map[string]struct {
		kind, body string
		status     int
	}{
		"code twice":    {kind: formType, body: "grant_type=authorization_code&code=a&code=b", status: 400},
		"a list":        {kind: jsonType, body: `{"grant_type":["a","b"]}`, status: 400},
		"an object":     {kind: jsonType, body: `{"code":{"x":1}}`, status: 400},
		"no object":     {kind: jsonType, body: `"code"`, status: 400},
		"two objects":   {kind: jsonType, body: `{}{}`, status: 400},
		"a broken form": {kind: formType, body: "code=%zz", status: 400},
		"another type":  {kind: "text/plain", body: "grant_type=authorization_code", status: 400},
		"a large body":  {kind: formType, body: "code=" + strings.Repeat("x", 17_000), status: 413},
	} {
		a := post("/oauth/token", c.kind, c.body)
		edgetest.Want(t, a, c.status, `{"error":"invalid_request"`)
		if len(r.server.Forms) != 0 || strings.Contains(a.Body, "statusCode") {
			t.Errorf("%s: reached the token server, or is answered with %s", name, a.Body)
		}
	}
}

func TestUserInfo_TakesBearerTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	get := func(authorization string) edgetest.Answer {
		t.Helper()
		return r.Call(t, "GET", "/oauth/userinfo", "", "Authorization", authorization)
	}
	edgetest.Want(t, get("bearer "+edgetest.ReaderToken), 200, `"sub":"`+edgetest.PersonID.String()+`"`, `"email":"ada@example.org"`, `"org_id":"`+edgetest.OrgID.String()+`"`)
	for name, authorization := range map[string]string{
		"none": "", "raw": edgetest.ReaderToken, "unknown": "Bearer cra_other", "a key": "Bearer " + edgetest.APIKey, "basic": "Basic eDp5", "empty": "Bearer ",
	} {
		a := get(authorization)
		edgetest.Want(t, a, 401, `{"error":"invalid_token"`)
		if !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), `Bearer resource_metadata="http://crier.test/.well-known/oauth-protected-resource/mcp"`) {
			t.Errorf("%s: WWW-Authenticate is %q", name, a.Header.Get("WWW-Authenticate"))
		}
	}
	edgetest.Want(t, get("Bearer "+edgetest.SuspendedToken), 403, `"error":"insufficient_scope"`)
}

func TestDevice_LogIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	json := []string{"Content-Type", "application/json"}
	a := r.Call(t, "POST", "/device/code", "")
	edgetest.Want(t, a, 200, `"device_code":"crd_device"`, `"user_code":"BCDF-GHJK"`, `"verification_uri":"http://crier.test/device"`, `"expires_in":900`, `"interval":5`)
	edgetest.Want(t, r.Call(t, "POST", "/device/code", `{"client_id":"unknown"}`, json...), 401, `{"error":"invalid_client"`)
	poll := func(code string) edgetest.Answer {
		t.Helper()
		return r.Call(t, "POST", "/device/token", `{"device_code":"`+code+`"}`, json...)
	}
	edgetest.Want(t, poll("crd_device"), 400, `{"error":"authorization_pending"`)
	edgetest.Want(t, poll("other"), 400, `{"error":"expired_token"`)
	edgetest.Want(t, poll(""), 400, `{"error":"invalid_request"`)

	a = r.browse(t, "/device", "")
	edgetest.Want(t, a, 200, "<h1>Sign in</h1>")
	action, _ := form(t, a)
	if a := r.submit(t, action, "", credentials("right")); a.Header.Get("Location") != "/device?signed_in=1" {
		t.Errorf("the sign-in leads to %q, want the page", a.Header.Get("Location"))
	}
	a = r.browse(t, "/device", edgetest.UserSession)
	action, fields := form(t, a)
	edgetest.Want(t, r.submit(t, action, edgetest.UserSession, url.Values{"userCode": {"xxxx-xxxx"}}), 404, `value="XXXX-XXXX"`, "This code is wrong")
	edgetest.Want(t, r.submit(t, action, "", url.Values{"userCode": {edgetest.UserCode}}), 200, "<h1>Sign in</h1>")
	edgetest.Want(t, r.submit(t, action, edgetest.UserSession, url.Values{"userCode": {edgetest.UserCode}}, "Origin", "https://evil.test"), 403)
	fields.Set("userCode", "bcdf ghjk")
	a = r.submit(t, action, edgetest.UserSession, fields)
	edgetest.Want(t, a, 200, "Let Planner use your account?", "the device that shows the code BCDF-GHJK")
	action, fields = form(t, a)
	fields.Set("action", "approve")
	forged := url.Values{"userCode": {edgetest.UserCode}, "action": {"approve"}}
	edgetest.Want(t, r.submit(t, action, edgetest.UserSession, forged), 400, "out of date")
	edgetest.Want(t, r.submit(t, action, edgetest.OtherSession, fields), 400, "out of date")
	if len(r.server.Consents) != 0 {
		t.Fatal("a forged answer was accepted")
	}
	fields.Set("mustAsk", "1")
	edgetest.Want(t, r.submit(t, action, edgetest.UserSession, fields), 200, "go back to your device")
	if c := r.server.Consents[0]; !c.Limits.MustAsk || c.Request.Resource != "http://crier.test/mcp" || c.Scopes.String() != "mcp:read mcp:write offline_access" {
		t.Errorf("the consent is %+v", c)
	}
	edgetest.Want(t, poll("crd_device"), 200, `"access_token":"cra_new"`, `"api_url":"http://crier.test"`, `"organization_id":"`+edgetest.OrgID.String()+`"`)
	fields.Set("action", "deny")
	edgetest.Want(t, r.submit(t, action, edgetest.UserSession, fields), 200, "You have denied access")
	if !slices.Equal(r.server.Denied, []string{edgetest.UserCode}) {
		t.Errorf("denied %q", r.server.Denied)
	}
}

// TestDevice_WithoutClientIDIsCommandLine: the stock command line sends an empty body.
func TestDevice_WithoutClientIDIsCommandLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	edgetest.Want(t, r.Call(t, "POST", "/device/code", ""), 200)
	edgetest.Want(t, r.Call(t, "POST", "/device/code", `{"client_id":"ccl_static"}`, "Content-Type", "application/json"), 200)
	if want := []string{"ccl_public", "ccl_static"}; !slices.Equal(r.server.Started, want) {
		t.Errorf("the log-ins are by %q, want %q", r.server.Started, want)
	}
	if len(r.server.Registered) != 1 {
		t.Fatalf("registered %+v, want one client", r.server.Registered)
	}
	m := r.server.Registered[0]
	if m.Name != "Command line" || m.Auth != "none" || !slices.Equal(m.RedirectURIs, []string{"http://127.0.0.1/"}) {
		t.Errorf("registered %+v", m)
	}
}

// TestDevice_ClientIsNotVerified: a device can send the id of any client.
func TestDevice_ClientIsNotVerified(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.server.DeviceClient = "https://writer.test/client.json"
	a := r.submit(t, "/device", edgetest.UserSession, url.Values{"userCode": {edgetest.UserCode}})
	edgetest.Want(t, a, 200, "Let Writer use your account?", "not verified")
	if strings.Contains(a.Body, "described by") {
		t.Errorf("the page calls the client verified: %s", a.Body)
	}
}

func TestAppsPage_ListsAndRevokes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	grant := edgetest.AGrant()
	r.server.Granted = []oidc.Grant{grant}
	edgetest.Want(t, r.browse(t, "/oauth/apps", ""), 200, "<h1>Sign in</h1>")
	a := r.browse(t, "/oauth/apps", edgetest.UserSession)
	edgetest.Want(t, a, 200, "Writer", "described by writer.test", "Writes drafts only", "At most 3 posts a day", "Never used")
	action, fields := form(t, a)
	edgetest.Want(t, r.submit(t, action, edgetest.UserSession, fields, "Origin", "https://evil.test"), 403)
	edgetest.Want(t, r.submit(t, action, "", fields), 200, "<h1>Sign in</h1>")
	edgetest.Want(t, r.browse(t, "/oauth/apps", edgetest.ImpersonatorSession), 403)
	if len(r.server.Granted) != 1 {
		t.Fatal("a grant was revoked by a stranger")
	}
	a = r.submit(t, action, edgetest.UserSession, fields)
	if a.Status != 303 || a.Header.Get("Location") != "/oauth/apps" || len(r.server.Granted) != 0 {
		t.Errorf("got %d to %q: %s", a.Status, a.Header.Get("Location"), a.Body)
	}
	edgetest.Want(t, r.browse(t, "/oauth/apps", edgetest.UserSession), 200, "No app can act for you")
}

// TestAppsPage_ListsEachGrantOnce: the port returns the grants of all organizations, including
// those that the person has lost access to.
func TestAppsPage_ListsEachGrantOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	here, elsewhere := edgetest.AGrant(), edgetest.AGrant()
	elsewhere.Org, elsewhere.OrgName = id.New[tenancy.OrgTag](), "Elsewhere"
	r.server.Granted = []oidc.Grant{here, elsewhere}
	a := r.browse(t, "/oauth/apps", edgetest.UserSession)
	edgetest.Want(t, a, 200, "For <bdi>Acme</bdi>", "For <bdi>Elsewhere</bdi>")
	if got := strings.Count(a.Body, "<article>"); got != 2 {
		t.Errorf("the page has %d apps, want 2: %s", got, a.Body)
	}
	fields := url.Values{"grant": {elsewhere.ID.String()}}
	if a := r.submit(t, "/oauth/apps", edgetest.UserSession, fields); a.Status != 303 || len(r.server.Granted) != 1 {
		t.Errorf("revoking in another organization: got %d %s", a.Status, a.Body)
	}
}

func TestGrants_ListedAndRevokedByRoutes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	grant := edgetest.AGrant()
	r.server.Granted = []oidc.Grant{grant}
	own := r.Call(t, "GET", "/user/approved-apps", "", "auth", edgetest.UserSession)
	edgetest.Want(t, own, 200, `"id":"`+grant.ID.String()+`"`, `"name":"Writer"`, `"verifiedHost":"writer.test"`, `"mustAsk":true`, `"postsPerDay":3`, `"lastUsedAt":null`, `"channels":[]`)
	if strings.Contains(own.Body, edgetest.Ada) {
		t.Errorf("the list of one's own has the person: %s", own.Body)
	}
	edgetest.Want(t, r.Call(t, "GET", "/settings/agents", "", "auth", edgetest.UserSession), 403)
	edgetest.Want(t, r.Call(t, "GET", "/settings/agents", "", "auth", edgetest.AdminSession), 200, edgetest.Ada)
	edgetest.Want(t, r.Call(t, "DELETE", "/settings/agents/x", "", "auth", edgetest.AdminSession), 404)
	edgetest.Want(t, r.Call(t, "DELETE", "/user/approved-apps/"+grant.ID.String(), "", "auth", edgetest.UserSession), 200, `"id":"`+grant.ID.String()+`"`)
	edgetest.Want(t, r.Call(t, "DELETE", "/user/approved-apps/"+grant.ID.String(), "", "auth", edgetest.UserSession), 404)
}

func TestApp_NeedsAdministratorAndProof(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	call := func(method, path, body, session string) edgetest.Answer {
		t.Helper()
		return r.Call(t, method, path, body, "Content-Type", "application/json", "auth", session)
	}
	const app = `"name":"Newsroom","description":"Writes.","redirectUrl":"https://newsroom.test/cb"`
	edgetest.Want(t, call("POST", "/user/oauth-app", `{`+app+`,"password":"right"}`, edgetest.UserSession), 403)
	edgetest.Want(t, call("POST", "/user/oauth-app", `{`+app+`,"password":"right"}`, edgetest.ImpersonatorSession), 403)
	edgetest.Want(t, call("POST", "/user/oauth-app", `{`+app+`}`, edgetest.AdminSession), 400)
	edgetest.Want(t, call("POST", "/user/oauth-app", `{`+app+`,"password":"wrong"}`, edgetest.AdminSession), 400)
	edgetest.Want(t, call("POST", "/user/oauth-app", `{`+app+`,"password":"right"}`, edgetest.AdminSession), 201,
		`"clientId":"ccl_new"`, `"clientSecret":"ccs_new"`, `"redirectUrl":"https://newsroom.test/cb"`)
	edgetest.Want(t, call("POST", "/user/oauth-app", `{"name":"x"}`, edgetest.AdminSession), 400, "redirectUrl")
	got := call("GET", "/user/oauth-app", "", edgetest.AdminSession)
	edgetest.Want(t, got, 200, `"clientId":"ccl_static"`, `"description":"Writes news."`)
	if strings.Contains(strings.ToLower(got.Body), "secret") {
		t.Errorf("the secret is shown again: %s", got.Body)
	}
	edgetest.Want(t, call("PUT", "/user/oauth-app", `{`+app+`}`, edgetest.AdminSession), 200, `"name":"Newsroom"`)
	edgetest.Want(t, call("POST", "/user/oauth-app/rotate-secret", `{"password":"wrong"}`, edgetest.AdminSession), 400)
	edgetest.Want(t, call("POST", "/user/oauth-app/rotate-secret", `{"password":"right"}`, edgetest.AdminSession), 201, `"clientSecret":"ccs_rotated"`)
	edgetest.Want(t, call("DELETE", "/user/oauth-app", "", edgetest.AdminSession), 200, `{"deleted":true}`)
	if !slices.Contains(r.server.Proofs, "wrong") {
		t.Error("no proof was checked")
	}
}

// TestPorts_Missing: an instance without an OAuth server says so.
func TestPorts_Missing(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for _, path := range []string{"/oauth/authorize?" + request(), "/user/approved-apps"} {
		edgetest.Want(t, s.Call(t, "GET", path, "", "auth", edgetest.UserSession), 501, "no OAuth server")
	}
	edgetest.Want(t, s.Call(t, "POST", "/oauth/token", "{}", "Content-Type", "application/json"), 501)
	edgetest.Want(t, s.Call(t, "GET", "/public/v1/is-connected", "", "Authorization", edgetest.WriterToken), 401)
}
