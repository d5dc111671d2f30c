package team_test

import (
	"testing"

	"crier/tests/edgetest"
)

func TestAccounts_EveryRoute(t *testing.T) {
	t.Parallel()
	edgetest.CheckExchanges(t, []edgetest.Exchange{
		{
			As: edgetest.AdminSession, Method: "GET", Path: "/settings/team", Status: 200, Calls: []string{"Team"},
			Parts: []string{`"role":"ADMIN"`, `"email":"ada@example.org"`, `"sendFailureEmails":true`},
		},
		{
			As: edgetest.AdminSession, Method: "POST", Path: "/settings/team", Body: `{"role":"USER","sendEmail":false}`, Status: 201, Calls: []string{"Invite  USER false"},
			Parts: []string{`"url":"` + edgetest.BaseURL + `/app/#org=` + edgetest.NewToken + `"`, `"expiresAt":"2026-01-02T03:04:05.000Z"`},
		},
		{As: edgetest.AdminSession, Method: "POST", Path: "/settings/team", Body: `{"role":"USER","sendEmail":true}`, Status: 400, Parts: []string{"email is required"}},
		{As: edgetest.AdminSession, Method: "POST", Path: "/settings/team", Body: `{"role":"SUPERADMIN","sendEmail":false}`, Status: 400, Parts: []string{"role must be one of"}},
		{
			As: edgetest.UserSession, Method: "DELETE", Path: "/settings/team/u1",
			Status: 200, Parts: []string{`{"id":"u1","keys":[],"webhooks":[],"invitations":[],"providerCredentials":[],"approvals":[]}`}, Calls: []string{"RemoveMember u1 false"},
		},
		{
			As: edgetest.AdminSession, Method: "DELETE", Path: "/settings/team/u1?revokeKeys=true", Status: 200,
			Parts: []string{`"keys":[{"id":"`, `"name":"Key"`, `"revoked":true`}, Calls: []string{"RemoveMember u1 true"},
		},
		{
			As: edgetest.AdminSession, Method: "PUT", Path: "/settings/team/u1/role", Body: `{"role":"ADMIN"}`,
			Status: 200, Parts: []string{`{"id":"u1","role":"ADMIN","keys":[],"webhooks":[],"invitations":[],"providerCredentials":[],"approvals":[]}`}, Calls: []string{"SetRole u1 ADMIN"},
		},
		{
			As: edgetest.OwnerSession, Method: "PUT", Path: "/settings/team/u1/role", Body: `{"role":"SUPERADMIN","password":"right"}`,
			Status: 200, Parts: []string{`"role":"SUPERADMIN"`}, Calls: []string{"SetRole u1 SUPERADMIN"},
		},
		{As: edgetest.AdminSession, Method: "PUT", Path: "/settings/team/u1/role", Body: `{"role":"ROOT"}`, Status: 400, Parts: []string{"role must be one of"}},
		{
			As: edgetest.AdminSession, Method: "GET", Path: "/settings/invitations",
			Status: 200, Parts: []string{`"email":null,"role":"USER","invitedBy":"ada@example.org"`}, Calls: []string{"Invitations"},
		},
		{As: edgetest.AdminSession, Method: "DELETE", Path: "/settings/invitations/i1", Status: 200, Parts: []string{`{"id":"i1"}`}, Calls: []string{"RevokeInvitation i1"}},
	})
}
