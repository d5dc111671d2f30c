package edge_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"crier/apps/edge"
)

var pathParameter = regexp.MustCompile(`\{\w+\}`)

// concrete returns the path of a route with values for its parameters.
func concrete(r edge.Route) string { return pathParameter.ReplaceAllString(r.Path, "x1") }

// sessionRoutes returns the routes that need a session.
func sessionRoutes(t *testing.T) (out []edge.Route) {
	t.Helper()
	for _, r := range edge.Routes() {
		if slices.Contains([]edge.Credential{"session", "admin", "owner", "person", "instance"}, r.Credential) {
			out = append(out, r)
		}
	}
	if len(out) < 150 {
		t.Fatalf("%d routes need a session, want more than 150", len(out))
	}
	return out
}

// reach has the sessions that may use the routes of a credential.
var reach = map[edge.Credential][]string{
	"session": {goodSession, adminSession, ownerSession, instanceSession, behindSession},
	"joined":  {goodSession, adminSession, ownerSession, instanceSession, behindSession, enrollSession},
	"admin":   {adminSession, ownerSession, behindSession},
	"owner":   {ownerSession, behindSession},
	"person": {
		goodSession, adminSession, ownerSession, instanceSession, behindSession, homelessSession, suspendedSession, enrollSession,
	},
	"instance": {instanceSession, behindSession},
}

// TestAccess_OfEverySessionRoute calls every route as each kind of person. The body is not valid JSON, so that a refusal
// that is not 403 shows that the guards have let the request pass.
func TestAccess_OfEverySessionRoute(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"APP_LIMIT": "100000"})
	checked := 0
	for _, r := range sessionRoutes(t) {
		for token := range principals() {
			allowed := slices.Contains(reach[r.Credential], token) && !(r.Personal && token == behindSession)
			a := s.call(t, r.Method, concrete(r), "{", "auth", token, "Content-Type", "application/json")
			refused := a.status == 403 && !strings.Contains(a.body, "You are not a member.")
			if refused == allowed {
				t.Errorf("%s, which is %q, as %s: answered %d %s, want it allowed: %v", r, r.Credential, token, a.status, a.body, allowed)
			}
			checked++
		}
	}
	t.Logf("%d requests", checked)
	if calls := s.called(); slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "SetRole") }) {
		t.Error("an unreadable body has reached a use case")
	}
}

func TestAccess_RefusalNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for token, c := range map[string]struct {
		words  string
		enroll bool
	}{
		homelessSession:  {words: "You are a member of no organization."},
		suspendedSession: {words: "has suspended the organization"},
		enrollSession:    {words: "enable one first", enroll: true},
	} {
		a := s.call(t, "GET", "/settings/organization", "", "auth", token)
		want(t, a, 403, c.words)
		if strings.Contains(a.body, `"mfaEnrollmentRequired":true`) != c.enroll {
			t.Errorf("%s: answered %s, want mfaEnrollmentRequired: %v", token, a.body, c.enroll)
		}
	}
	want(t, s.call(t, "GET", "/settings/team", "", "auth", goodSession), 403, "Only administrators")
	want(t, s.call(t, "POST", "/settings/delete-organization", "{}", "auth", adminSession, "Content-Type", "application/json"), 403, "Only the owner")
	want(t, s.call(t, "GET", "/user/impersonate", "", "auth", ownerSession), 403, "administrators of the instance")
	want(t, s.call(t, "POST", "/user/change-password", "{}", "auth", behindSession, "Content-Type", "application/json"), 403, "Only the person")
}

// TestAccess_RoleIsCheckedBeforeBody sends a request whose body never ends.
func TestAccess_RoleIsCheckedBeforeBody(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.dial(t, post("/settings/team", asJSON+"auth: "+goodSession+"\r\n", 900_000)+strings.Repeat(" ", 16<<10)) // more than the server reads with the headers
	if resp, body, _ := answered(t, c); resp.StatusCode != 403 {
		t.Errorf("answered %d %s, want 403", resp.StatusCode, body)
	}
}

// TestPersonal_RoutesOfSecrets lists the routes that an administrator who acts as another person may not use.
func TestPersonal_RoutesOfSecrets(t *testing.T) {
	t.Parallel()
	var got []string
	for _, r := range edge.Routes() {
		if r.Personal {
			got = append(got, r.String())
		}
	}
	all := []string{
		"GET /auth/oauth/{provider}", "POST /auth/oauth/{provider}/exists", "POST /settings/api-keys",
		"POST /settings/delete-organization", "POST /settings/team", "PUT /settings/team/{id}/role", "POST /user/api-key/rotate",
		"POST /user/change-email", "POST /user/change-password", "POST /user/mfa/begin", "POST /user/mfa/confirm", "POST /user/mfa/disable",
		"PUT /user/mfa/policy", "POST /user/mfa/recovery-codes", "DELETE /user/identities/{id}", "DELETE /user/sessions", "GET /user/sessions", "POST /user/join-org", "POST /user/restore-organization",
		"POST /user/organizations", "POST /user/personal",
		"POST /approvals/{id}/resolve", "POST /webhooks", "PUT /webhooks", "POST /webhooks/{id}/rotate-secret",
		"POST /settings/provider-credentials/{provider}", "DELETE /settings/provider-credentials/{provider}",
	}
	slices.Sort(got)
	slices.Sort(all)
	if !slices.Equal(got, all) {
		t.Errorf("personal are\n%q, want\n%q", got, all)
	}
	s := start(t, nil)
	json := []string{"auth", behindSession, "Content-Type", "application/json"}
	want(t, s.call(t, "GET", "/auth/oauth/GITHUB", "", "auth", behindSession), 403, "Only the person")
	want(t, s.call(t, "POST", "/auth/oauth/GITHUB/exists", `{"code":"c","state":"s"}`, json...), 403, "Only the person")
	s.wantCalls(t)
}

// crossSite has headers by which a browser names the page that sends a request, and that no route may accept together
// with a cookie.
var crossSite = map[string][]string{
	"no origin":         nil,
	"another origin":    {"Origin", "https://evil.test"},
	"an opaque origin":  {"Origin", "null"},
	"another site":      {"Sec-Fetch-Site", "cross-site"},
	"a sibling's pages": {"Sec-Fetch-Site", "same-site"},
}

// TestCSRF_EveryUnsafeRouteOfBrowsers sends what a page of another site can send, to every unsafe route that a browser
// uses with cookies.
func TestCSRF_EveryUnsafeRouteOfBrowsers(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"APP_LIMIT": "100000"})
	checked := 0
	for _, r := range edge.Routes() {
		open := slices.Contains([]edge.Credential{"none", "operator", "api key"}, r.Credential)
		if r.Method == "GET" || open {
			continue
		}
		for name, headers := range crossSite {
			headers = append([]string{"Cookie", "auth=" + ownerSession, "Content-Type", "application/json"}, headers...)
			if a := s.call(t, r.Method, concrete(r), "{}", headers...); a.status != 403 || !strings.Contains(a.body, "another site") {
				t.Errorf("%s from %s: answered %d %s, want 403", r, name, a.status, a.body)
			}
			checked++
		}
		if r.Method == "DELETE" || r.State != edge.Built {
			continue
		}
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""} {
			headers := []string{"Cookie", "auth=" + ownerSession, "Origin", baseURL, "Content-Type", kind}
			if kind == "" {
				headers = headers[:4]
			}
			if a := s.call(t, r.Method, concrete(r), `{"id":""}`, headers...); a.status != 400 && a.status != 403 {
				t.Errorf("%s with the type %q: answered %d %s, want 400", r, kind, a.status, a.body)
			}
			checked++
		}
	}
	t.Logf("%d requests", checked)
	s.wantCalls(t)
}

// TestImpersonate_HeaderOrCookie: the administrator of the instance acts as the membership, which is never chosen
// without a session.
func TestImpersonate_HeaderOrCookie(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for name, headers := range map[string][]string{
		"header": {"auth", instanceSession, "impersonate", membership},
		"cookie": {"Cookie", "auth=" + instanceSession + "; impersonate=" + membership},
		"both":   {"Cookie", "auth=" + instanceSession + "; impersonate=other", "impersonate", membership},
	} {
		if a := s.call(t, "GET", "/user/self", "", headers...); a.status != 200 || !strings.Contains(a.body, `"impersonate":true`) || !strings.Contains(a.body, `"admin":false`) {
			t.Errorf("%s: answered %d %s, want the person who is impersonated", name, a.status, a.body)
		}
	}
	want(t, s.call(t, "GET", "/user/self", "", "impersonate", membership), 401)
	a := s.call(t, "GET", "/user/self", "", "Cookie", "auth="+instanceSession+"; impersonate=gone")
	if got := setCookies(t, a); a.status != 404 || got["impersonate"] == nil || got["impersonate"].Value != "" {
		t.Errorf("answered %d with the cookies %v, want 404 and the cookie deleted", a.status, got)
	}
}

func TestImpersonate_SetsAndClearsCookie(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	json := []string{"Content-Type", "application/json"}
	a := s.call(t, "POST", "/user/impersonate", fmt.Sprintf(`{"id":%q}`, membership), append(json, "auth", instanceSession)...)
	if c := setCookies(t, a)["impersonate"]; a.status != 201 || a.body != "" || c == nil || c.Value != membership || !c.HttpOnly {
		t.Errorf("answered %d %q with %v, want 201, no body, and the cookie", a.status, a.body, c)
	}
	a = s.call(t, "POST", "/user/impersonate", `{"id":""}`, append(json, "auth", behindSession)...)
	if c := setCookies(t, a)["impersonate"]; a.status != 201 || c == nil || c.Value != "" || c.MaxAge >= 0 {
		t.Errorf("answered %d with %v, want 201 and the cookie deleted", a.status, c)
	}
	s.wantCalls(t, "Impersonate "+membership+" true", "Impersonate  false")
	want(t, s.call(t, "GET", "/user/impersonate?name=ac", "", "auth", instanceSession), 200,
		`"id":"`+membership+`"`, `"role":"ADMIN"`, `"name":"Acme"`, `"subscription":null`, `"email":"ada@example.org"`)
}
