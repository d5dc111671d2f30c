package contract

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// agent is a client that a person lets act for them, through the service's endpoints and pages.
type agent struct {
	*rig
	id, verifier string
	cookies      string
}

const agentCallback = "http://127.0.0.1:4711/callback"

// send sends a request and returns the response and its body. A body of type url.Values is a form.
func (a *agent) send(t *testing.T, method, path string, body any, headers ...string) (*http.Response, string) {
	t.Helper()
	text, kind := "", ""
	switch body := body.(type) {
	case url.Values:
		text, kind = body.Encode(), "application/x-www-form-urlencoded"
	case m:
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text, kind = string(raw), "application/json"
	}
	req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := a.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(out)
}

// page opens a page, or submits a form if fields is not nil, as a browser does.
func (a *agent) page(t *testing.T, path string, fields url.Values) (*http.Response, string) {
	t.Helper()
	headers := []string{"Accept", "text/html", "Cookie", a.cookies, "Origin", base}
	method, body := http.MethodGet, any(nil)
	if fields != nil {
		method, body = http.MethodPost, fields
	}
	res, text := a.send(t, method, path, body, headers...)
	for _, c := range res.Cookies() {
		if !strings.HasPrefix(c.Name, "__Host-") && c.Value != "" {
			a.cookies = strings.Trim(a.cookies+"; "+c.Name+"="+c.Value, "; ")
		}
	}
	return res, text
}

var (
	formAction  = regexp.MustCompile(`<form method="post" action="([^"]*)">`)
	hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
	leadsOn     = regexp.MustCompile(`<meta http-equiv="refresh" content="0;url=([^"]*)">`)
)

// formOf returns the address and the hidden fields of a page's form.
func formOf(t *testing.T, page string) (action string, fields url.Values) {
	t.Helper()
	found := formAction.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("the page has no form: %s", page)
	}
	fields = url.Values{}
	for _, field := range hiddenField.FindAllStringSubmatch(page, -1) {
		fields.Set(html.UnescapeString(field[1]), html.UnescapeString(field[2]))
	}
	return html.UnescapeString(found[1]), fields
}

// decoded returns the JSON body of a response with a status.
func decoded(t *testing.T, res *http.Response, body string, status int) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &out); err != nil || res.StatusCode != status {
		t.Fatalf("%s: got %d %s, want %d with JSON", res.Request.URL.Path, res.StatusCode, body, status)
	}
	return out
}

// TestAgent_FromRegistrationToRevocation lets a client register, signs its person in on the page,
// approves, and uses the tokens until the person revokes them.
func TestAgent_FromRegistrationToRevocation(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	a := &agent{rig: r, verifier: "a-verifier-of-at-least-43-characters-as-rfc-7636-asks"}
	res, body := a.send(t, "POST", "/oauth/register", m{
		"client_name": "Planner", "redirect_uris": []string{"http://127.0.0.1/callback"}, "token_endpoint_auth_method": "none",
	})
	a.id = decoded(t, res, body, http.StatusCreated)["client_id"].(string)

	code := a.approve(t, nil)
	tokens := a.exchange(t, code, http.StatusOK)
	access := tokens["access_token"].(string)
	a.checkAccess(t, access)
	if got := a.exchange(t, code, http.StatusBadRequest)["error"]; got != "invalid_grant" {
		t.Errorf("the code again: got %v, want invalid_grant", got)
	}
	res, body = a.send(t, "GET", "/public/v1/is-connected", nil, "Authorization", access)
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("after its code was replayed, the token gets %d %s", res.StatusCode, body)
	}

	tokens = a.exchange(t, a.approve(t, url.Values{"write": nil, "postsPerDay": {"3"}}), http.StatusOK)
	access = tokens["access_token"].(string)
	res, body = a.send(t, "POST", "/public/v1/tags", m{"name": "x", "color": "#123456"}, "Authorization", access)
	if decoded(t, res, body, http.StatusForbidden)["error"] != "insufficient_scope" {
		t.Errorf("writing without the scope: got %s", body)
	}
	res, body = a.send(t, "POST", "/oauth/token", url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {tokens["refresh_token"].(string)}, "client_id": {a.id},
	})
	access = decoded(t, res, body, http.StatusOK)["access_token"].(string)

	_, page := a.page(t, "/oauth/apps", nil)
	if !strings.Contains(page, "Planner") || !strings.Contains(page, "At most 3 posts a day") {
		t.Fatalf("the page does not list the client: %s", page)
	}
	action, fields := formOf(t, page)
	res, body = a.page(t, action, fields)
	if res.StatusCode != http.StatusSeeOther {
		t.Fatalf("revoking: got %d %s", res.StatusCode, body)
	}
	res, body = a.send(t, "GET", "/oauth/userinfo", nil, "Authorization", "Bearer "+access)
	if decoded(t, res, body, http.StatusUnauthorized)["error"] != "invalid_token" {
		t.Errorf("after the revocation: got %s", body)
	}
}

// approve asks the person for access, signs them in if a page asks for it, and approves. change
// replaces fields of the consent page, and removes those without a value. approve returns the code.
func (a *agent) approve(t *testing.T, change url.Values) (code string) {
	t.Helper()
	sum := sha256.Sum256([]byte(a.verifier))
	request := "/oauth/authorize?" + url.Values{
		"client_id": {a.id}, "redirect_uri": {agentCallback}, "response_type": {"code"}, "state": {"s&<>"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "resource": {base + "/mcp"},
	}.Encode()
	_, page := a.page(t, request, nil)
	if strings.Contains(page, "<h1>Sign in</h1>") {
		action, fields := formOf(t, page)
		fields.Set("step", "password")
		fields.Set("email", a.email)
		fields.Set("password", password)
		res, body := a.page(t, action, fields)
		if res.StatusCode != http.StatusSeeOther {
			t.Fatalf("signing in: got %d %s", res.StatusCode, body)
		}
		_, page = a.page(t, res.Header.Get("Location"), nil)
	}
	for _, want := range []string{"Planner", "not verified", "a program on this computer", "First"} {
		if !strings.Contains(page, want) {
			t.Fatalf("the consent page has no %q: %s", want, page)
		}
	}
	action, fields := formOf(t, page)
	fields.Set("action", "approve")
	fields.Set("write", "1")
	for name, values := range change {
		fields[name] = values
	}
	_, page = a.page(t, action, fields)
	found := leadsOn.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("the page leads nowhere: %s", page)
	}
	to, err := url.Parse(html.UnescapeString(found[1]))
	q := to.Query()
	if err != nil || !strings.HasPrefix(to.String(), agentCallback) || q.Get("state") != "s&<>" || q.Get("iss") != base {
		t.Fatalf("the page leads to %s (%v)", found[1], err)
	}
	if res, page := a.page(t, action, fields); res.StatusCode != http.StatusConflict {
		t.Errorf("the same answer again: got %d %s, want 409", res.StatusCode, page)
	}
	return q.Get("code")
}

func (a *agent) exchange(t *testing.T, code string, status int) map[string]any {
	t.Helper()
	res, body := a.send(t, "POST", "/oauth/token", m{
		"grant_type": "authorization_code", "code": code, "redirect_uri": agentCallback, "code_verifier": a.verifier, "client_id": a.id,
	})
	return decoded(t, res, body, status)
}

// checkAccess checks what a token that may write can and cannot do.
func (a *agent) checkAccess(t *testing.T, access string) {
	t.Helper()
	for _, c := range []struct {
		method, path string
		body         any
		status       int
	}{
		{method: "GET", path: "/public/v1/is-connected", status: http.StatusOK},
		{method: "POST", path: "/public/v1/tags", body: m{"name": "by an agent", "color": "#123456"}, status: http.StatusCreated},
		{method: "GET", path: "/public/v1/webhooks", status: http.StatusForbidden},
		{method: "GET", path: "/settings/organization", status: http.StatusUnauthorized},
	} {
		res, body := a.send(t, c.method, c.path, c.body, "Authorization", access)
		if res.StatusCode != c.status {
			t.Errorf("%s %s: got %d %s, want %d", c.method, c.path, res.StatusCode, body, c.status)
		}
	}
	res, body := a.send(t, "GET", "/oauth/userinfo", nil, "Authorization", "Bearer "+access)
	if got := decoded(t, res, body, http.StatusOK); got["email"] != a.email {
		t.Errorf("the person is %v, want %s", got, a.email)
	}
}
