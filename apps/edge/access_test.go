package edge_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"crier/apps/edge"
	"crier/tests/edgetest"
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

// reach lists the sessions that may use the routes of each credential.
var reach = map[edge.Credential][]string{
	"session": {edgetest.UserSession, edgetest.OtherSession, edgetest.AdminSession, edgetest.OwnerSession, edgetest.InstanceSession, edgetest.ImpersonatorSession},
	"joined":  {edgetest.UserSession, edgetest.OtherSession, edgetest.AdminSession, edgetest.OwnerSession, edgetest.InstanceSession, edgetest.ImpersonatorSession, edgetest.EnrollSession},
	"admin":   {edgetest.AdminSession, edgetest.OwnerSession, edgetest.ImpersonatorSession},
	"owner":   {edgetest.OwnerSession, edgetest.ImpersonatorSession},
	"person": {
		edgetest.UserSession, edgetest.OtherSession, edgetest.AdminSession, edgetest.OwnerSession, edgetest.InstanceSession, edgetest.ImpersonatorSession, edgetest.HomelessSession, edgetest.SuspendedSession, edgetest.EnrollSession,
	},
	"instance": {edgetest.InstanceSession, edgetest.ImpersonatorSession},
}

// TestAccess_EverySessionRouteByRole calls every route as each kind of person. The body is invalid
// JSON, so any refusal other than 403 shows that the guards let the request through.
func TestAccess_EverySessionRouteByRole(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"APP_LIMIT": "100000"})
	checked := 0
	for _, r := range sessionRoutes(t) {
		for token := range edgetest.Principals() {
			allowed := slices.Contains(reach[r.Credential], token) && !(r.Personal && token == edgetest.ImpersonatorSession)
			a := s.Call(t, r.Method, concrete(r), "{", "auth", token, "Content-Type", "application/json")
			refused := a.Status == 403 && !strings.Contains(a.Body, "You are not a member.")
			if refused == allowed {
				t.Errorf("%s, which is %q, as %s: answered %d %s, want it allowed: %v", r, r.Credential, token, a.Status, a.Body, allowed)
			}
			checked++
		}
	}
	t.Logf("%d requests", checked)
	if calls := s.TakeCalls(); slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "SetRole") }) {
		t.Error("an unreadable body has reached a use case")
	}
}

func TestAccess_RefusalNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for token, c := range map[string]struct {
		words  string
		enroll bool
	}{
		edgetest.HomelessSession:  {words: "You are not a member of any organization."},
		edgetest.SuspendedSession: {words: "has suspended the organization"},
		edgetest.EnrollSession:    {words: "enable one first", enroll: true},
	} {
		a := s.Call(t, "GET", "/settings/organization", "", "auth", token)
		edgetest.Want(t, a, 403, c.words)
		if strings.Contains(a.Body, `"mfaEnrollmentRequired":true`) != c.enroll {
			t.Errorf("%s: answered %s, want mfaEnrollmentRequired: %v", token, a.Body, c.enroll)
		}
	}
	edgetest.Want(t, s.Call(t, "GET", "/settings/team", "", "auth", edgetest.UserSession), 403, "Only administrators")
	edgetest.Want(t, s.Call(t, "POST", "/settings/delete-organization", "{}", "auth", edgetest.AdminSession, "Content-Type", "application/json"), 403, "Only the owner")
	edgetest.Want(t, s.Call(t, "GET", "/user/impersonate", "", "auth", edgetest.OwnerSession), 403, "instance administrators")
	edgetest.Want(t, s.Call(t, "POST", "/user/change-password", "{}", "auth", edgetest.ImpersonatorSession, "Content-Type", "application/json"), 403, "Only the person")
}

// TestAccess_RoleIsCheckedBeforeBody sends a request whose body never ends.
func TestAccess_RoleIsCheckedBeforeBody(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	// The padding is more than the server reads together with the headers.
	c := dial(t, s, post("/settings/team", asJSON+"auth: "+edgetest.UserSession+"\r\n", 900_000)+strings.Repeat(" ", 16<<10))
	if resp, body, _ := answered(t, c); resp.StatusCode != 403 {
		t.Errorf("answered %d %s, want 403", resp.StatusCode, body)
	}
}

// TestPersonal_RoutesOfSecrets lists the routes that an administrator who impersonates another
// person may not use.
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
		"POST /user/organizations", "POST /user/personal", "POST /user/oauth-app", "PUT /user/oauth-app",
		"POST /user/oauth-app/rotate-secret", "POST /oauth/authorize", "POST /oauth/apps", "POST /device",
		"POST /approvals/{id}/resolve", "POST /webhooks", "PUT /webhooks", "POST /webhooks/{id}/rotate-secret",
		"POST /settings/provider-credentials/{provider}", "DELETE /settings/provider-credentials/{provider}",
	}
	slices.Sort(got)
	slices.Sort(all)
	if !slices.Equal(got, all) {
		t.Errorf("personal are\n%q, want\n%q", got, all)
	}
	s := edgetest.New(t, nil)
	json := []string{"auth", edgetest.ImpersonatorSession, "Content-Type", "application/json"}
	edgetest.Want(t, s.Call(t, "GET", "/auth/oauth/GITHUB", "", "auth", edgetest.ImpersonatorSession), 403, "Only the person")
	edgetest.Want(t, s.Call(t, "POST", "/auth/oauth/GITHUB/exists", `{"code":"c","state":"s"}`, json...), 403, "Only the person")
	s.WantCalls(t)
}

// crossSite has headers by which a browser identifies the page that sends a request. No route may
// accept them together with a cookie.
var crossSite = map[string][]string{
	"no origin":         nil,
	"another origin":    {"Origin", "https://evil.test"},
	"an opaque origin":  {"Origin", "null"},
	"another site":      {"Sec-Fetch-Site", "cross-site"},
	"a sibling's pages": {"Sec-Fetch-Site", "same-site"},
}

// TestCSRF_EveryUnsafeRouteOfBrowsers sends every unsafe route that browsers use with cookies the
// requests that a page of another site can send.
func TestCSRF_EveryUnsafeRouteOfBrowsers(t *testing.T) {
	t.Parallel()
	s, _ := edgetest.NewOAuth(t, map[string]string{"APP_LIMIT": "100000"})
	checked := 0
	for _, r := range edge.Routes() {
		open := slices.Contains([]edge.Credential{"none", "operator", "api key", "agent", "upload address"}, r.Credential)
		if r.Method == "GET" || open {
			continue
		}
		for name, headers := range crossSite {
			headers = append([]string{"Cookie", "auth=" + edgetest.OwnerSession, "Content-Type", "application/json"}, headers...)
			if a := s.Call(t, r.Method, concrete(r), "{}", headers...); a.Status != 403 || !strings.Contains(a.Body, "another site") {
				t.Errorf("%s from %s: answered %d %s, want 403", r, name, a.Status, a.Body)
			}
			checked++
		}
		if r.Method == "DELETE" || r.State != edge.Built {
			continue
		}
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""} {
			headers := []string{"Cookie", "auth=" + edgetest.OwnerSession, "Origin", edgetest.BaseURL, "Content-Type", kind}
			if kind == "" {
				headers = headers[:4]
			}
			// Pages of the service submit forms to these routes.
			if page := slices.Contains([]string{"page", "consent"}, r.Limits.String()); page && strings.Contains(kind, "urlencoded") {
				continue
			}
			if a := s.Call(t, r.Method, concrete(r), `{"id":""}`, headers...); a.Status != 400 && a.Status != 403 {
				t.Errorf("%s with the type %q: answered %d %s, want 400", r, kind, a.Status, a.Body)
			}
			checked++
		}
	}
	t.Logf("%d requests", checked)
	s.WantCalls(t)
}
