package edge_test

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"
)

// accountRoutes are requests of people with a session: who sends it, the status and parts of the answer, and the calls of
// use cases.
var accountRoutes = []struct {
	as, method, path, body string
	status                 int
	parts                  []string
	calls                  []string
}{
	{as: adminSession, method: "GET", path: "/user/subscription", status: 200, parts: []string{`{"subscription":null}`}, calls: []string{"Self"}},
	{as: goodSession, method: "GET", path: "/user/subscription/tiers", status: 200, parts: []string{`{"month":[],"year":[],"tiers":[]}`}},
	{
		as: goodSession, method: "GET", path: "/user/personal", status: 200,
		parts: []string{`"name":"Ada"`, `"bio":"Counts."`, `"picture":{"id":"kept","path":"http://elsewhere.test/kept.png"}`}, calls: []string{"Self"},
	},
	{
		as: homelessSession, method: "POST", path: "/user/personal", body: `{"fullname":"Ada L."}`, status: 201,
		parts: []string{`"name":"Ada L."`, `"picture":null`}, calls: []string{"SetProfile Ada L."},
	},
	{
		as: homelessSession, method: "POST", path: "/user/personal", body: `{"fullname":"Ada","picture":null,"bio":null}`, status: 201,
		parts: []string{`"picture":null`}, calls: []string{"SetProfile Ada"},
	},
	{
		as: goodSession, method: "GET", path: "/user/email-notifications", status: 200,
		parts: []string{`"sendSuccessEmails":false`, `"sendFailureEmails":true`, `"events":{"approval":"mail","comment":"bell"`}, calls: []string{"Notifications"},
	},
	{
		as: goodSession, method: "POST", path: "/user/email-notifications",
		body:   `{"sendSuccessEmails":true,"sendFailureEmails":false,"sendStreakEmails":true,"events":{"comment":"off"}}`,
		status: 201, parts: []string{`"sendStreakEmails":true`, `"comment":"off"`, `"billing":"mail"`},
		calls: []string{"Notifications", "SetNotifications true false true mail off mail mail"},
	},
	{as: goodSession, method: "POST", path: "/user/email-notifications", body: `{"sendSuccessEmails":true}`, status: 400, parts: []string{"sendFailureEmails is required"}},
	{
		as: goodSession, method: "POST", path: "/user/email-notifications", status: 400, parts: []string{"events.comment must be one of"},
		body: `{"sendSuccessEmails":true,"sendFailureEmails":false,"sendStreakEmails":true,"events":{"comment":"fax"}}`,
	},
	{
		as: goodSession, method: "POST", path: "/user/setup", body: `{"company":"Acme","fullname":"Ada","timezone":-330}`, status: 201,
		parts: []string{`{"setup":true}`}, calls: []string{"Setup Ada Acme  -330"},
	},
	{as: goodSession, method: "POST", path: "/user/setup", body: `{"timezone":"Mars/Olympus"}`, status: 400, parts: []string{"no time zone"}},
	{
		as: goodSession, method: "GET", path: "/user/organizations", status: 200, calls: []string{"Organizations"},
		parts: []string{`"name":"Acme"`, `"shortlink":"ASK"`, `"users":[{"role":"ADMIN","disabled":false}]`, `"subscription":null`, `"streakSince":null`},
	},
	{as: homelessSession, method: "POST", path: "/user/organizations", body: `{"name":"New"}`, status: 201, parts: []string{`"name":"New"`}, calls: []string{"CreateOrganization New"}},
	{as: goodSession, method: "POST", path: "/user/organizations", body: `{"name":"ab"}`, status: 400, parts: []string{"name must be"}},
	{as: goodSession, method: "POST", path: "/user/join-org", body: `{"org":"spent"}`, status: 201, parts: []string{`{"id":null}`}, calls: []string{"JoinOrganization " + ada + " spent"}},
	{as: goodSession, method: "POST", path: "/user/join-org", body: `{}`, status: 400, parts: []string{"org is required"}},
	{as: goodSession, method: "POST", path: "/user/join-org", body: `{"org":"foreign"}`, status: 403, calls: []string{"JoinOrganization " + ada + " foreign"}},
	{as: goodSession, method: "POST", path: "/user/change-org", body: `{"id":"other"}`, status: 403},
	{as: goodSession, method: "POST", path: "/user/restore-organization", body: `{"id":"o1"}`, status: 201, parts: []string{`{"restored":true}`}, calls: []string{"RestoreOrganization o1"}},
	{
		as: goodSession, method: "POST", path: "/user/change-password", body: `{"oldPassword":"right","newPassword":"correct horse","repeatPassword":"correct horse"}`,
		status: 201, parts: []string{`{"changed":true}`}, calls: []string{"ChangePassword right correct horse"},
	},
	{as: goodSession, method: "POST", path: "/user/change-password", body: `{"oldPassword":"right","newPassword":"short"}`, status: 400, parts: []string{"newPassword must be 8 to 128"}},
	{
		as: goodSession, method: "POST", path: "/user/change-password", body: `{"oldPassword":"right","newPassword":"correct horse","repeatPassword":""}`,
		status: 400, parts: []string{"repeatPassword must be the same"},
	},
	{
		as: goodSession, method: "POST", path: "/user/change-email", body: `{"email":" New@Example.org ","password":"right","code":"1"}`,
		status: 201, parts: []string{`{"changed":false}`}, calls: []string{"ChangeAddress new@example.org 1"},
	},
	{as: goodSession, method: "GET", path: "/user/mfa/status", status: 200, calls: []string{"MFAStatus"},
		parts: []string{`"enabled":true,"required":true,"enabledAt":"2026-01-02T03:04:05.000Z","recoveryCodesLeft":9`}},
	{as: enrollSession, method: "POST", path: "/user/mfa/begin", body: `{"password":"right"}`, status: 201, parts: []string{`"secret":"SECRET"`}, calls: []string{"BeginMFA"}},
	{
		as: enrollSession, method: "POST", path: "/user/mfa/confirm", body: `{"code":"1"}`,
		status: 201, parts: []string{`{"enabled":true,"recoveryCodes":["r1","r2"]}`}, calls: []string{"ConfirmMFA 1"},
	},
	{as: goodSession, method: "POST", path: "/user/mfa/disable", body: `{"password":"right","code":"1"}`, status: 201, parts: []string{`{"enabled":false}`}, calls: []string{"DisableMFA 1"}},
	{
		as: goodSession, method: "POST", path: "/user/mfa/recovery-codes", body: `{"code":"1"}`,
		status: 201, parts: []string{`"recoveryCodes":["r3"]`}, calls: []string{"ReplaceRecoveryCodes 1"},
	},
	{as: goodSession, method: "GET", path: "/user/mfa/policy", status: 200, parts: []string{`{"required":true}`}, calls: []string{"MFAPolicy"}},
	{as: adminSession, method: "PUT", path: "/user/mfa/policy", body: `{"required":false}`, status: 200, parts: []string{`{"required":false}`}, calls: []string{"SetMFAPolicy false"}},
	{
		as: goodSession, method: "GET", path: "/user/sessions",
		status: 200, parts: []string{`"id":"` + sessionID.String() + `","current":true`, `"userAgent":"Browser"`}, calls: []string{"ListSessions"},
	},
	{as: goodSession, method: "DELETE", path: "/user/sessions", status: 200, parts: []string{`{"ended":2}`}, calls: []string{"EndSessions"}},
	{as: goodSession, method: "DELETE", path: "/user/sessions?id=s1", status: 200, parts: []string{`{"ended":2}`}, calls: []string{"EndSessions s1"}},
	{as: goodSession, method: "GET", path: "/user/identities", status: 200, parts: []string{`"provider":"GITHUB","createdAt":"2026-01-02T03:04:05.000Z"}]`}, calls: []string{"Identities"}},
	{as: goodSession, method: "DELETE", path: "/user/identities/i1", status: 200, parts: []string{`{"id":"i1"}`}, calls: []string{"UnlinkIdentity i1"}},
	{as: goodSession, method: "DELETE", path: "/user/identities/last", status: 409, parts: []string{"could not sign in"}},
	{
		as: goodSession, method: "GET", path: "/settings/organization", status: 200, calls: []string{"Organization"},
		parts: []string{`"name":"Acme","description":"Makes things.","timezone":"Europe/Vienna","shortlink":"ASK"`, `"createdAt":"2026-01-02T03:04:05.000Z"`},
	},
	{
		as: adminSession, method: "PUT", path: "/settings/organization", body: `{"name":"Better","role":"SUPERADMIN","plan":"ULTIMATE"}`,
		status: 200, parts: []string{`"name":"Better"`}, calls: []string{"UpdateOrganization Better Europe/Vienna false"},
	},
	{
		as: adminSession, method: "PUT", path: "/settings/organization", body: `{"timezone":"Asia/Tokyo","description":""}`,
		status: 200, parts: []string{`"timezone":"Asia/Tokyo"`}, calls: []string{"UpdateOrganization Acme Asia/Tokyo true"},
	},
	{as: adminSession, method: "PUT", path: "/settings/organization", body: `{}`, status: 400, parts: []string{"must have name"}},
	{as: adminSession, method: "PUT", path: "/settings/organization", body: `{"timezone":""}`, status: 400, parts: []string{"timezone must not be empty"}},
	{as: adminSession, method: "PUT", path: "/settings/organization", body: `{"name":["x"]}`, status: 400, parts: []string{"name must be a string"}},
	{
		as: adminSession, method: "GET", path: "/settings/team", status: 200, calls: []string{"Team"},
		parts: []string{`"role":"ADMIN"`, `"email":"ada@example.org"`, `"sendFailureEmails":true`},
	},
	{
		as: adminSession, method: "POST", path: "/settings/team", body: `{"role":"USER","sendEmail":false}`, status: 201, calls: []string{"Invite  USER false"},
		parts: []string{`"url":"` + baseURL + `/app/#org=` + newToken + `"`, `"expiresAt":"2026-01-02T03:04:05.000Z"`},
	},
	{as: adminSession, method: "POST", path: "/settings/team", body: `{"role":"USER","sendEmail":true}`, status: 400, parts: []string{"email is required"}},
	{as: adminSession, method: "POST", path: "/settings/team", body: `{"role":"SUPERADMIN","sendEmail":false}`, status: 400, parts: []string{"role must be one of"}},
	{as: goodSession, method: "DELETE", path: "/settings/team/u1", status: 200, parts: []string{`{"id":"u1","keys":[],"webhooks":[],"invitations":[],"providerCredentials":[],"approvals":[]}`}, calls: []string{"RemoveMember u1 false"}},
	{
		as: adminSession, method: "DELETE", path: "/settings/team/u1?revokeKeys=true", status: 200,
		parts: []string{`"keys":[{"id":"`, `"name":"Key"`, `"revoked":true`}, calls: []string{"RemoveMember u1 true"},
	},
	{
		as: adminSession, method: "PUT", path: "/settings/team/u1/role", body: `{"role":"ADMIN"}`,
		status: 200, parts: []string{`{"id":"u1","role":"ADMIN","keys":[],"webhooks":[],"invitations":[],"providerCredentials":[],"approvals":[]}`}, calls: []string{"SetRole u1 ADMIN"},
	},
	{
		as: ownerSession, method: "PUT", path: "/settings/team/u1/role", body: `{"role":"SUPERADMIN","password":"right"}`,
		status: 200, parts: []string{`"role":"SUPERADMIN"`}, calls: []string{"SetRole u1 SUPERADMIN"},
	},
	{as: adminSession, method: "PUT", path: "/settings/team/u1/role", body: `{"role":"ROOT"}`, status: 400, parts: []string{"role must be one of"}},
	{
		as: adminSession, method: "GET", path: "/settings/invitations",
		status: 200, parts: []string{`"email":null,"role":"USER","invitedBy":"ada@example.org"`}, calls: []string{"Invitations"},
	},
	{as: adminSession, method: "DELETE", path: "/settings/invitations/i1", status: 200, parts: []string{`{"id":"i1"}`}, calls: []string{"RevokeInvitation i1"}},
	{
		as: adminSession, method: "GET", path: "/settings/api-keys", status: 200, calls: []string{"Keys"},
		parts: []string{`"prefix":"crier_ab12…"`, `"lastUsedAt":"2026-01-02T03:04:05.000Z","expiresAt":null,"overlapUntil":null`, `"createdBy":{"id":"` + personID.String() + `","email":"ada@example.org"}`},
	},
	{
		as: adminSession, method: "POST", path: "/settings/api-keys", body: `{"name":"n","expiresAt":"2999-01-01"}`, status: 201,
		parts: []string{`"key":"` + goodKey + `"`, `"expiresAt":"2999-01-01T00:00:00.000Z"`}, calls: []string{"CreateKey n"},
	},
	{as: adminSession, method: "POST", path: "/settings/api-keys", body: `{"name":"n","expiresAt":"2001-01-01"}`, status: 400, parts: []string{"expiresAt must be"}},
	{as: adminSession, method: "PUT", path: "/settings/api-keys/k1", body: `{"name":"n"}`, status: 200, parts: []string{`"name":"n"`}, calls: []string{"RenameKey k1 n"}},
	{as: adminSession, method: "DELETE", path: "/settings/api-keys/k1", status: 200, parts: []string{`{"id":"k1"}`}, calls: []string{"DeleteKey k1"}},
	{as: adminSession, method: "POST", path: "/user/api-key/rotate", status: 201, parts: []string{`"apiKey":"` + goodKey + `"`, `"name":"Key"`}, calls: []string{"RotateKey  0"}},
	{as: adminSession, method: "POST", path: "/user/api-key/rotate", body: `{"id":"k1","overlapHours":72}`, status: 201, calls: []string{"RotateKey k1 72"}},
	{as: adminSession, method: "POST", path: "/user/api-key/rotate", body: `{"overlapHours":73}`, status: 400, parts: []string{"overlapHours"}},
	{as: goodSession, method: "POST", path: "/settings/delete-account", body: `{"password":"right","confirm":"yes"}`, status: 400, parts: []string{"confirm must be one of"}},
	{
		as: ownerSession, method: "POST", path: "/settings/delete-organization", body: `{"password":"right","confirm":"DELETE"}`,
		status: 201, parts: []string{`{"deleted":true}`}, calls: []string{"DeleteOrganization"},
	},
}

func TestAccounts_EveryRoute(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, c := range accountRoutes {
		headers := []string{"auth", c.as, "Host", "evil.test", "X-Forwarded-Host", "evil.test"}
		if c.body != "" {
			headers = append(headers, "Content-Type", "application/json")
		}
		a := s.call(t, c.method, c.path, c.body, headers...)
		if a.status != c.status {
			t.Errorf("%s %s %s: answered %d %s, want %d", c.method, c.path, c.body, a.status, a.body, c.status)
		}
		for _, part := range c.parts {
			if !strings.Contains(a.body, part) {
				t.Errorf("%s %s %s: answered %s, want it to contain %s", c.method, c.path, c.body, a.body, part)
			}
		}
		if strings.Contains(a.body, "evil.test") {
			t.Errorf("%s %s: the answer has the host of the request: %s", c.method, c.path, a.body)
		}
		s.wantCalls(t, c.calls...)
	}
}

func TestSelf_OfEachPerson(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	want(t, s.call(t, "GET", "/user/self", "", "auth", adminSession), 200,
		`"id":"`+personID.String()+`","email":"ada@example.org","name":"Ada","lastName":""`, `"pictureId":"kept","providerName":"GITHUB"`,
		`"orgId":"`+organization.String()+`"`, `"tier":"ULTIMATE","role":"ADMIN","access":"full"`, `"publicApi":"crier_ab12…"`,
		`"sendFailureEmails":true`, `"streakSince":null`, `"timezone":"Europe/Vienna"`)
	want(t, s.call(t, "GET", "/user/self", "", "auth", goodSession), 200, `"role":"USER"`, `"publicApi":""`)
	want(t, s.call(t, "GET", "/user/self", "", "auth", homelessSession), 200, `"orgId":""`, `"access":"none"`, `"role":""`)
	want(t, s.call(t, "GET", "/user/self", "", "auth", suspendedSession), 200, `"access":"suspended"`, `"publicApi":""`)
	want(t, s.call(t, "GET", "/user/self", "", "auth", instanceSession), 200, `"admin":true,"impersonate":false`)
	want(t, s.call(t, "GET", "/user/self", "", "auth", behindSession), 200, `"admin":false,"impersonate":true`)
}

func TestProfile_PictureIsOwnMedium(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	set := func(session, id string) answer {
		return s.call(t, "POST", "/user/personal", fmt.Sprintf(`{"fullname":"Ada","picture":{"id":%q,"path":"https://evil.test/track.png"}}`, id),
			"Content-Type", "application/json", "auth", session)
	}
	own := baseURL + picture.Path()
	want(t, set(goodSession, picture.ID.String()), 201, `"picture":{"id":"`+picture.ID.String()+`","path":"`+own+`"}`)
	s.wantCalls(t, "Self", "SetProfile Ada  "+picture.ID.String()+" "+own)
	want(t, set(homelessSession, "kept"), 201, `"path":"http://elsewhere.test/kept.png"`) // the one that the person has
	want(t, set(goodSession, "another"), 400, "picture.id must be the id of an image")
	want(t, set(homelessSession, picture.ID.String()), 400, "picture.id")
}

func TestOrganizations_SetCookie(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for path, body := range map[string]string{
		"/user/organizations": `{"name":"Acme"}`, "/user/change-org": `{"id":"` + organization.String() + `"}`,
	} {
		a := s.call(t, "POST", path, body, "Content-Type", "application/json", "auth", goodSession)
		if c := setCookies(t, a)["showorg"]; a.status != 201 || c == nil || c.Value != organization.String() {
			t.Errorf("%s: answered %d with %v, want 201 with the cookie showorg", path, a.status, c)
		}
		if path == "/user/change-org" && a.body != "" {
			t.Errorf("%s: answered %q, want no body", path, a.body)
		}
	}
	want(t, s.call(t, "POST", "/user/join-org", `{"org":"t"}`, "Content-Type", "application/json", "auth", goodSession), 201, `{"id":"`+organization.String()+`"}`)
}

func TestDeletion_ClearsCookies(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	body := `{"password":"right","confirm":"DELETE"}`
	a := s.call(t, "POST", "/settings/delete-account", body, "Content-Type", "application/json", "auth", goodSession)
	want(t, a, 201, `{"deleted":true}`)
	if got := names(unprefixed(t, setCookies(t, a))); got != "-auth -impersonate -showorg" || a.header.Get("Logout") != "true" {
		t.Errorf("an account: sets %q with logout %q", got, a.header.Get("Logout"))
	}
	a = s.call(t, "POST", "/settings/delete-organization", body, "Content-Type", "application/json", "auth", ownerSession)
	if got := names(setCookies(t, a)); a.status != 201 || got != "-showorg" || a.header.Get("Logout") != "" {
		t.Errorf("an organization: answered %d, sets %q with logout %q", a.status, got, a.header.Get("Logout"))
	}
	s.wantCalls(t, "DeleteAccount", "DeleteOrganization")
}

func TestDeletion_IsRefusedWhileActing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	body := `{"password":"right","confirm":"DELETE"}`
	a := s.call(t, "POST", "/settings/delete-account", body, "Content-Type", "application/json", "auth", behindSession)
	want(t, a, 400, "stop acting as somebody else")
	if got := names(setCookies(t, a)); got != "" {
		t.Errorf("sets %q, want no cookie", got)
	}
	s.wantCalls(t)
}

func TestBody_NamesAreExact(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	role := func(body string) answer {
		return s.call(t, "PUT", "/settings/team/u1/role", body, "Content-Type", "application/json", "auth", ownerSession)
	}
	want(t, role(`{"role":"USER","Role":"SUPERADMIN","Password":"right"}`), 200, `"role":"USER"`)
	s.wantCalls(t, "SetRole u1 USER")
	want(t, role(`{"ROLE":"USER"}`), 400, "role is required")
	want(t, role(`{"role":"SUPERADMIN","Password":"right"}`), 400, "password is wrong")
	s.wantCalls(t)
}

func TestAudit_AsJSON(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a := s.call(t, "GET", "/settings/audit?from=2026-01-01&to=2026-02-01T00:00:00%2B02:00&actor=ada&action=key.created&page=2&limit=50", "", "auth", adminSession)
	want(t, a, 200, `"action":"key.created","actor":"ada@example.org","actorId":"`+personID.String()+`","via":"session","keyId":null,"behind":null`,
		`"actorId":null,"via":"key","keyId":"`+keyID.String()+`","behind":"@root"`)
	if a.header.Get("X-Has-More") != "true" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("got the headers %v, want X-Has-More and JSON", a.header)
	}
	want(t, s.call(t, "GET", "/settings/audit", "", "auth", adminSession), 200)
	s.wantCalls(t, "Audit 2026-01-01 2026-01-31 ada key.created 2 50", "Audit 0001-01-01 0001-01-01   0 100")
	want(t, s.call(t, "GET", "/settings/audit?from=x&to=y&page=-1&limit=1001&actor="+strings.Repeat("a", 129), "", "auth", adminSession), 400,
		"from must be", "to must be", "page must be", "limit must be", "actor must be")
}

// TestAudit_CSVHasNoFormulas: a spreadsheet runs a cell that begins with one of these characters.
func TestAudit_CSVHasNoFormulas(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a := s.call(t, "GET", "/settings/audit", "", "auth", adminSession, "Accept", "text/csv")
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) != 3 || a.header.Get("X-Has-More") != "true" {
		t.Fatalf("got %d rows, error %v and the headers %v", len(rows), err, a.header)
	}
	if kind := a.header.Get("Content-Type"); kind != "text/csv; charset=utf-8" || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("got the headers %v, want a CSV file", a.header)
	}
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
				t.Errorf("the cell %q is a formula", cell)
			}
		}
	}
	if rows[1][8] != `'=HYPERLINK("x")` || rows[2][3] != "'+bot" || rows[2][7] != "'@root" || rows[2][8] != "'-1" {
		t.Errorf("got the rows %q", rows[1:])
	}
}
