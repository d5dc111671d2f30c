package session_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"crier/publishing"
	"crier/tests/edgetest"
)

func TestSession_ByCookieOrHeader(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	path := "/integrations/social/sandbox?refresh=&externalUrl=&redirectUrl=/app&onboarding=true"
	a := s.Call(t, "GET", path, "", "Cookie", "auth="+edgetest.UserSession+"; showorg="+edgetest.OrgID.String())
	edgetest.Want(t, a, 200, `{"url":"the-state"}`)
	if a.Header.Get("X-RateLimit-Limit") != "600" || a.Header.Get("X-RateLimit-Remaining") != "599" {
		t.Errorf("got the headers %v, want a limit of 600 of which 599 are left", a.Header)
	}
	header := strings.ToUpper(edgetest.OrgID.String())
	edgetest.Want(t, s.Call(t, "GET", path, "", "auth", edgetest.UserSession, "showorg", header), 200)
	if got, want := strings.Join(s.Orgs, " "), edgetest.OrgID.String()+" "+header; got != want {
		t.Errorf("the sessions are of the organizations %s, want %s", got, want)
	}
	if want := (publishing.BeginConnect{Connector: "sandbox", ReturnURL: "/app", Onboarding: true}); s.Begun != want {
		t.Errorf("the command is %+v, want %+v", s.Begun, want)
	}
	for _, h := range [][]string{nil, {"Cookie", "auth=old"}, {"auth", "old"}, {"Authorization", edgetest.APIKey}} {
		a := s.Call(t, "GET", path, "", h...)
		edgetest.Want(t, a, 401, `"statusCode":401`)
		if a.Header.Get("Logout") != "true" || !strings.Contains(a.Header.Get("Set-Cookie"), "auth=;") {
			t.Errorf("with %v got the headers %v, want logout and no cookie", h, a.Header)
		}
	}
	for _, bad := range []string{"javascript:alert(1)", "//evil.test", "ftp://x/", "/%5Cevil", "relative", "https://evil.test/x", "http://crier.test.evil.test/", "http://user@crier.test/"} {
		edgetest.Want(t, s.Call(t, "GET", "/integrations/social/sandbox?redirectUrl="+bad, "", "auth", edgetest.UserSession), 400, "redirectUrl")
	}
	edgetest.Want(t, s.Call(t, "GET", "/integrations/social/sandbox?redirectUrl="+edgetest.BaseURL+"/x", "", "auth", edgetest.UserSession), 200)
}

func TestSession_OtherSitesCannotUseCookie(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"FRONTEND_URL": "https://app.test:443/ui"})
	cookie := []string{"Cookie", "auth=" + edgetest.UserSession}
	for name, c := range map[string]struct {
		headers []string
		status  int
	}{
		"nothing said":      {headers: cookie, status: 403},
		"another origin":    {headers: append([]string{"Origin", "https://evil.test"}, cookie...), status: 403},
		"a longer name":     {headers: append([]string{"Origin", edgetest.BaseURL + ".evil.test"}, cookie...), status: 403},
		"same site":         {headers: append([]string{"Sec-Fetch-Site", "same-site"}, cookie...), status: 403},
		"origin and fetch":  {headers: append([]string{"Origin", "https://evil.test", "Sec-Fetch-Site", "same-origin"}, cookie...), status: 403},
		"own origin":        {headers: append([]string{"Origin", edgetest.BaseURL}, cookie...), status: 201},
		"frontend's origin": {headers: append([]string{"Origin", "https://app.test"}, cookie...), status: 201},
		"same origin fetch": {headers: append([]string{"Sec-Fetch-Site", "same-origin"}, cookie...), status: 201},
		"header instead":    {headers: []string{"auth", edgetest.UserSession, "Origin", "https://evil.test"}, status: 201},
	} {
		if a := s.Call(t, "POST", "/user/logout", "", c.headers...); a.Status != c.status {
			t.Errorf("%s: answered %d %s, want %d", name, a.Status, a.Body, c.status)
		}
	}
}

func TestMember_RefusesChangesInForeignOrganization(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for name, c := range map[string]struct {
		organization string
		status       int
	}{
		"none": {organization: "", status: 200}, "the person's": {organization: strings.ToUpper(edgetest.OrgID.String()), status: 200}, "another": {organization: "nope", status: 403},
	} {
		a := s.Call(t, "PUT", "/integrations/x/pause", `{"paused":true}`, "Content-Type", "application/json", "auth", edgetest.UserSession, "showorg", c.organization)
		if a.Status != c.status || (c.status == 403) != strings.Contains(a.Body, "showorg") {
			t.Errorf("%s: answered %d %s, want %d", name, a.Status, a.Body, c.status)
		}
		if a := s.Call(t, "GET", "/approvals", "", "auth", edgetest.UserSession, "showorg", c.organization); a.Status != 200 {
			t.Errorf("%s, reading: %d %s", name, a.Status, a.Body)
		}
		if a := s.Call(t, "GET", "/integrations/social/sandbox", "", "auth", edgetest.UserSession, "showorg", c.organization); a.Status != c.status {
			t.Errorf("%s, beginning a connect: %d %s, want %d", name, a.Status, a.Body, c.status)
		}
	}
}

func TestMember_ClearsStaleOrganizationCookie(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	const stale = "auth=" + edgetest.UserSession + "; showorg=nope"
	post := func(path, cookies string) edgetest.Answer {
		t.Helper()
		return s.Call(t, "POST", path, `{"id":"`+edgetest.OrgID.String()+`"}`, "Content-Type", "application/json", "Origin", edgetest.BaseURL, "Cookie", cookies)
	}
	cleared := func(a edgetest.Answer) (names []string) {
		for _, line := range a.Header.Values("Set-Cookie") {
			c, err := http.ParseSetCookie(line)
			if err != nil {
				t.Fatal(err)
			}
			if c.Value == "" && !c.Expires.After(edgetest.Day) {
				names = append(names, c.Name)
			}
		}
		slices.Sort(names)
		return names
	}
	a := s.Call(t, "PUT", "/integrations/x/pause", `{"paused":true}`, "Content-Type", "application/json", "Origin", edgetest.BaseURL, "Cookie", stale)
	if got := cleared(a); a.Status != 403 || !slices.Equal(got, []string{"showorg"}) {
		t.Errorf("a change: %d and cleared %q, want 403 and showorg: %s", a.Status, got, a.Body)
	}
	a = post("/user/logout", stale)
	if got := cleared(a); a.Status != 201 || !slices.Equal(got, []string{"__Host-auth", "__Host-impersonate", "auth", "impersonate", "showorg"}) {
		t.Errorf("log-out: %d and cleared %q: %s", a.Status, got, a.Body)
	}
	if a := post("/user/change-org", stale); a.Status != 201 {
		t.Errorf("the change to another organization: %s", a.Body)
	}
	if a := post("/user/change-org", "showorg=nope"); a.Status != 401 {
		t.Errorf("the change to another organization without a session: %d %s", a.Status, a.Body)
	}
}

// TestImpersonate_HeaderOrCookie: the instance administrator acts as the member with this
// membership. Without a session the request is refused.
func TestImpersonate_HeaderOrCookie(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for name, headers := range map[string][]string{
		"header": {"auth", edgetest.InstanceSession, "impersonate", edgetest.Membership},
		"cookie": {"Cookie", "auth=" + edgetest.InstanceSession + "; impersonate=" + edgetest.Membership},
		"both":   {"Cookie", "auth=" + edgetest.InstanceSession + "; impersonate=other", "impersonate", edgetest.Membership},
	} {
		if a := s.Call(t, "GET", "/user/self", "", headers...); a.Status != 200 || !strings.Contains(a.Body, `"impersonate":true`) || !strings.Contains(a.Body, `"admin":false`) {
			t.Errorf("%s: answered %d %s, want the person who is impersonated", name, a.Status, a.Body)
		}
	}
	edgetest.Want(t, s.Call(t, "GET", "/user/self", "", "impersonate", edgetest.Membership), 401)
	a := s.Call(t, "GET", "/user/self", "", "Cookie", "auth="+edgetest.InstanceSession+"; impersonate=gone")
	if got := edgetest.SetCookies(t, a); a.Status != 404 || got["impersonate"] == nil || got["impersonate"].Value != "" {
		t.Errorf("answered %d with the cookies %v, want 404 and the cookie deleted", a.Status, got)
	}
}

func TestImpersonate_WithoutGrantChangesNothing(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	json := []string{"Content-Type", "application/json", "auth", edgetest.AdminSession, "impersonate", edgetest.Membership}
	edgetest.Want(t, s.Call(t, "GET", "/user/self", "", json...), 200, `"impersonate":false`)
	edgetest.Want(t, s.Call(t, "POST", "/settings/api-keys", `{"name":"x"}`, json...), 403)
	a := s.Call(t, "POST", "/settings/api-keys", `{"name":"x"}`, "Content-Type", "application/json",
		"Origin", edgetest.BaseURL, "Cookie", "auth="+edgetest.AdminSession+"; impersonate="+edgetest.Membership)
	if got := edgetest.SetCookies(t, a); a.Status != 403 || got["impersonate"] == nil || got["impersonate"].Value != "" {
		t.Errorf("answered %d with the cookies %v, want 403 and the cookie deleted", a.Status, got)
	}
	acting := []string{"Content-Type", "application/json", "auth", edgetest.ImpersonatorSession, "showorg", "another"}
	if a := s.Call(t, "POST", "/user/email-notifications", `{"sendSuccessEmails":true,"sendFailureEmails":true,"sendStreakEmails":true}`, acting...); a.Status != 201 {
		t.Errorf("answered %d %s, want 201 whatever showorg names", a.Status, a.Body)
	}
}
