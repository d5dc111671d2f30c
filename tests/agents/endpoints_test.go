package agents

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"crier/tests/call"
)

// TestClients_StaticApp checks the application that an organization creates itself. It has a secret
// and may omit the challenge and the redirect.
func TestClients_StaticApp(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	const redirect = "https://static.example/callback"
	made := p.ask(t, http.MethodPost, "/user/oauth-app", m{"name": unique("Static "), "description": "Ours.", "redirectUrl": redirect})
	if made.Status < 200 || made.Status > 299 {
		t.Fatalf("POST /user/oauth-app: got %v, want a success", made)
	}
	a := &app{
		s: s, id: regexp.MustCompile(`ccl_\w+`).FindString(made.Body), secret: regexp.MustCompile(`ccs_\w+`).FindString(made.Body),
		method: "client_secret_post", redirect: redirect, name: "the static app", address: address(),
	}
	if a.id == "" || a.secret == "" {
		t.Fatalf("got %v, want an id and a secret", made)
	}
	if again := p.ask(t, http.MethodGet, "/user/oauth-app", nil); !strings.Contains(again.Body, a.id) || strings.Contains(again.Body, "ccs_") {
		t.Errorf("got %v, want the application without its secret", again)
	}
	omit := func(q url.Values) {
		q.Del("code_challenge")
		q.Del("code_challenge_method")
		q.Del("redirect_uri")
		q.Del("resource")
	}
	r := a.request(omit)
	q := back(t, p.submit(t, r, p.consentForm(t, r), approveButton), redirect)
	form := url.Values{"grant_type": {"authorization_code"}, "code": {q.Get("code")}}
	got := good(t, a.token(t, form))
	if got.ID != p.principal.Org.String() {
		t.Errorf("got the organization %s in the tokens, want %s", got.ID, p.principal.Org)
	}
	r = a.request(nil)
	full := r.exchangeForm(p.approve(t, r, nil))
	full.Set("code_verifier", strings.Repeat("a", 64))
	wantOAuthError(t, "a challenge that was sent holds", a.token(t, full), "invalid_grant")
	p.wantNoConsent(t, "another redirect", a.request(func(q url.Values) { q.Set("redirect_uri", redirect+"/x") }), "")
	wrong := *a
	wrong.secret = "ccs_wrong"
	wantOAuthError(t, "a wrong secret", wrong.token(t, a.refreshForm(got.Refresh)), "invalid_client")
	public := *a
	public.method = "none"
	wantOAuthError(t, "no secret", public.token(t, a.refreshForm(got.Refresh)), "invalid_client")

	rotated := p.ask(t, http.MethodPost, "/user/oauth-app/rotate-secret", m{"password": password})
	next := *a
	next.secret = regexp.MustCompile(`ccs_\w+`).FindString(rotated.Body)
	if next.secret == "" || next.secret == a.secret {
		t.Fatalf("rotate-secret: got %v, want another secret", rotated)
	}
	after := good(t, next.token(t, a.refreshForm(got.Refresh)))
	p.want(t, nil, http.MethodDelete, "/user/oauth-app", nil)
	checkRefusedSoon(t, s.base, after.Access)
	wantOAuthError(t, "an application that was deleted", next.token(t, a.refreshForm(after.Refresh)), "invalid_client", "invalid_grant")
}

// TestClients_Introspect checks what the server says about tokens, and to whom.
func TestClients_Introspect(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	a := s.register(t, withMember(metadata(unique("Secret "), "https://secret.example/callback"), "token_endpoint_auth_method", "client_secret_basic"))
	got := p.grant(t, a, nil)
	basic := func(a *app) []string {
		req := &http.Request{Header: http.Header{}}
		req.SetBasicAuth(url.QueryEscape(a.id), url.QueryEscape(a.secret))
		return []string{"Authorization", req.Header.Get("Authorization")}
	}
	ask := func(token string, headers ...string) call.Answer {
		return s.post(t, "/oauth/introspect", address(), url.Values{"token": {token}}, headers...)
	}
	wantRefusal(t, "nobody asks", ask(got.Access), http.StatusUnauthorized)
	wrong := *a
	wrong.secret += "x"
	wantRefusal(t, "a wrong secret", ask(got.Access, basic(&wrong)...), http.StatusUnauthorized)
	var out struct {
		Active   bool
		Scope    string
		ClientID string `json:"client_id"`
		OrgID    string `json:"org_id"`
		Iss      string
		Sub      string
	}
	for who, headers := range map[string][]string{"the client": basic(a), "a key": {"Authorization", p.key(t)}} {
		answer := ask(got.Access, headers...)
		if err := answer.Into(&out); err != nil || !out.Active || out.ClientID != a.id || out.OrgID != p.principal.Org.String() || out.Iss != s.base || out.Sub == "" {
			t.Errorf("%s asks: got %v, want an active token of the client and organization", who, answer)
		}
	}
	other := s.register(t, withMember(metadata(unique("Other "), "https://other.example/callback"), "token_endpoint_auth_method", "client_secret_basic"))
	for what, answer := range map[string]call.Answer{
		"another client's token":       ask(got.Access, basic(other)...),
		"another organization's token": ask(got.Access, "Authorization", s.owner(t).key(t)),
		"an unknown token":             ask("cra_unknown", basic(a)...),
	} {
		if strings.TrimSpace(answer.Body) != `{"active":false}` || answer.Status != http.StatusOK {
			t.Errorf("%s: got %v, want only active: false", what, answer)
		}
	}
}

// TestClients_UserInfo checks whom a token belongs to.
func TestClients_UserInfo(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	got := p.grant(t, s.native(t), nil)
	var out struct {
		Sub, Email string
		Verified   *bool  `json:"email_verified"`
		OrgID      string `json:"org_id"`
	}
	if err := s.get(t, "/oauth/userinfo", "Authorization", "Bearer "+got.Access).Into(&out); err != nil || out.Email != p.email || out.Sub == "" || out.OrgID != p.principal.Org.String() || out.Verified == nil {
		t.Errorf("got %+v, %v, want the person", out, err)
	}
	for _, header := range []string{"", "Bearer cra_unknown", "Bearer " + got.Refresh, "Basic x"} {
		a := s.get(t, "/oauth/userinfo", "Authorization", header)
		if a.Status != http.StatusUnauthorized || !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("with %q: got %v, want 401 with a challenge", header, a)
		}
	}
}

// TestClients_AreNamed checks that people see which program did what on whose behalf.
func TestClients_AreNamed(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	c := p.connect(t)
	app := s.native(t)
	a := agent{base: s.base, token: p.grant(t, app, nil).Access}
	var made []struct{ PostID string }
	a.must(t, &made, "service_create_post", m{"socialPost": []m{postEntry("schedule", tomorrow(), c.id, unique("named "))}})
	key := rest{base: s.base, credential: p.key(t)}
	var post struct {
		CreationMethod string
		Timeline       []struct {
			Event string
			By    any
		}
	}
	key.want(t, &post, http.MethodGet, "/posts/"+made[0].PostID, nil)
	named := false
	for _, e := range post.Timeline {
		text := strings.ToLower(strings.Join(texts(e.By), " "))
		named = named || strings.Contains(text, strings.ToLower(app.name)) && strings.Contains(text, "owner")
	}
	if !named || post.CreationMethod != "MCP" {
		t.Errorf("got %+v, want the method MCP, and %s and the owner in the timeline", post, app.name)
	}
	if audit := p.ask(t, http.MethodGet, "/settings/audit?limit=1000", nil); !strings.Contains(audit.Body, app.name) {
		t.Errorf("the audit log does not name %s: %v", app.name, audit)
	}
	apps := p.approvedApps(t)
	if len(apps) != 1 || !strings.Contains(apps[0].all, app.name) || strings.Contains(apps[0].all, "cra_") || strings.Contains(apps[0].all, "crt_") {
		t.Errorf("got the approved apps %+v, want %s without tokens", apps, app.name)
	}
	other := s.owner(t)
	wantRefusal(t, "another person revokes it", other.ask(t, http.MethodDelete, "/user/approved-apps/"+apps[0].id, nil), http.StatusNotFound)
	s.wantAlive(t, "the token", a.token)
}

// texts returns the texts in a value.
func texts(v any) (out []string) {
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case map[string]any:
		for _, x := range v {
			out = append(out, texts(x)...)
		}
	case []any:
		for _, x := range v {
			out = append(out, texts(x)...)
		}
	}
	return out
}
