package organization_test

import (
	"testing"

	"crier/tests/edgetest"
)

func TestAccounts_EveryRoute(t *testing.T) {
	t.Parallel()
	edgetest.CheckExchanges(t, []edgetest.Exchange{
		{
			As: edgetest.UserSession, Method: "GET", Path: "/user/organizations", Status: 200, Calls: []string{"Organizations"},
			Parts: []string{`"name":"Acme"`, `"shortlink":"ASK"`, `"users":[{"role":"ADMIN","disabled":false}]`, `"subscription":null`, `"streakSince":null`},
		},
		{As: edgetest.HomelessSession, Method: "POST", Path: "/user/organizations", Body: `{"name":"New"}`, Status: 201, Parts: []string{`"name":"New"`}, Calls: []string{"CreateOrganization New"}},
		{As: edgetest.UserSession, Method: "POST", Path: "/user/organizations", Body: `{"name":"ab"}`, Status: 400, Parts: []string{"name must be"}},
		{
			As: edgetest.UserSession, Method: "POST", Path: "/user/join-org", Body: `{"org":"spent"}`,
			Status: 201, Parts: []string{`{"id":null}`}, Calls: []string{"JoinOrganization " + edgetest.Ada + " spent"},
		},
		{As: edgetest.UserSession, Method: "POST", Path: "/user/join-org", Body: `{}`, Status: 400, Parts: []string{"org is required"}},
		{As: edgetest.UserSession, Method: "POST", Path: "/user/join-org", Body: `{"org":"foreign"}`, Status: 403, Calls: []string{"JoinOrganization " + edgetest.Ada + " foreign"}},
		{As: edgetest.UserSession, Method: "POST", Path: "/user/change-org", Body: `{"id":"other"}`, Status: 403},
		{
			As: edgetest.UserSession, Method: "GET", Path: "/settings/organization", Status: 200, Calls: []string{"Organization"},
			Parts: []string{`"name":"Acme","description":"Makes things.","timezone":"Europe/Vienna","shortlink":"ASK"`, `"createdAt":"2026-01-02T03:04:05.000Z"`},
		},
		{
			As: edgetest.AdminSession, Method: "PUT", Path: "/settings/organization", Body: `{"name":"Better","role":"SUPERADMIN","plan":"ULTIMATE"}`,
			Status: 200, Parts: []string{`"name":"Better"`}, Calls: []string{"UpdateOrganization Better Europe/Vienna false"},
		},
		{
			As: edgetest.AdminSession, Method: "PUT", Path: "/settings/organization", Body: `{"timezone":"Asia/Tokyo","description":""}`,
			Status: 200, Parts: []string{`"timezone":"Asia/Tokyo"`}, Calls: []string{"UpdateOrganization Acme Asia/Tokyo true"},
		},
		{As: edgetest.AdminSession, Method: "PUT", Path: "/settings/organization", Body: `{}`, Status: 400, Parts: []string{"must have name"}},
		{As: edgetest.AdminSession, Method: "PUT", Path: "/settings/organization", Body: `{"timezone":""}`, Status: 400, Parts: []string{"timezone must not be empty"}},
		{As: edgetest.AdminSession, Method: "PUT", Path: "/settings/organization", Body: `{"name":["x"]}`, Status: 400, Parts: []string{"name must be a string"}},
	})
}

func TestOrganizations_SetCookie(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for path, body := range map[string]string{
		"/user/organizations": `{"name":"Acme"}`, "/user/change-org": `{"id":"` + edgetest.OrgID.String() + `"}`,
	} {
		a := s.Call(t, "POST", path, body, "Content-Type", "application/json", "auth", edgetest.UserSession)
		if c := edgetest.SetCookies(t, a)["showorg"]; a.Status != 201 || c == nil || c.Value != edgetest.OrgID.String() {
			t.Errorf("%s: answered %d with %v, want 201 with the cookie showorg", path, a.Status, c)
		}
		if path == "/user/change-org" && a.Body != "" {
			t.Errorf("%s: answered %q, want no body", path, a.Body)
		}
	}
	edgetest.Want(t, s.Call(t, "POST", "/user/join-org", `{"org":"t"}`, "Content-Type", "application/json", "auth", edgetest.UserSession), 201, `{"id":"`+edgetest.OrgID.String()+`"}`)
}

func TestJoinOrganization_ByCookie(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	session := "auth=" + edgetest.UserSession
	a := s.Submit(t, "/user/join-org", `{}`, "Cookie", session+"; org=fresh")
	edgetest.Want(t, a, 201, `{"id":"`+edgetest.OrgID.String()+`"}`)
	if got := edgetest.CookieNames(edgetest.SetCookies(t, a)); got != "-org" {
		t.Errorf("sets %q, want the used invitation deleted", got)
	}
	a = s.Submit(t, "/user/join-org", `{"org":"spent"}`, "Cookie", session+"; org=fresh")
	edgetest.Want(t, a, 201, `{"id":null}`)
	if got := edgetest.CookieNames(edgetest.SetCookies(t, a)); got != "" {
		t.Errorf("another invitation: sets %q, want the cookie to stay", got)
	}
	s.WantCalls(t, "JoinOrganization "+edgetest.Ada+" fresh", "JoinOrganization "+edgetest.Ada+" spent")
}
