package security_test

import (
	"testing"

	"crier/tests/edgetest"
)

func TestAccounts_EveryRoute(t *testing.T) {
	t.Parallel()
	edgetest.CheckExchanges(t, []edgetest.Exchange{
		{
			As: edgetest.UserSession, Method: "POST", Path: "/user/change-password", Body: `{"oldPassword":"right","newPassword":"correct horse","repeatPassword":"correct horse"}`,
			Status: 201, Parts: []string{`{"changed":true}`}, Calls: []string{"ChangePassword right correct horse"},
		},
		{As: edgetest.UserSession, Method: "POST", Path: "/user/change-password", Body: `{"oldPassword":"right","newPassword":"short"}`, Status: 400, Parts: []string{"newPassword must be 8 to 128"}},
		{
			As: edgetest.UserSession, Method: "POST", Path: "/user/change-password", Body: `{"oldPassword":"right","newPassword":"correct horse","repeatPassword":""}`,
			Status: 400, Parts: []string{"repeatPassword must be the same"},
		},
		{
			As: edgetest.UserSession, Method: "POST", Path: "/user/change-email", Body: `{"email":" New@Example.org ","password":"right","code":"1"}`,
			Status: 201, Parts: []string{`{"changed":false}`}, Calls: []string{"ChangeAddress new@example.org 1"},
		},
		{As: edgetest.UserSession, Method: "GET", Path: "/user/mfa/status", Status: 200, Calls: []string{"MFAStatus"},
			Parts: []string{`"enabled":true,"required":true,"enabledAt":"2026-01-02T03:04:05.000Z","recoveryCodesLeft":9`}},
		{As: edgetest.EnrollSession, Method: "POST", Path: "/user/mfa/begin", Body: `{"password":"right"}`, Status: 201, Parts: []string{`"secret":"SECRET"`}, Calls: []string{"BeginMFA"}},
		{
			As: edgetest.EnrollSession, Method: "POST", Path: "/user/mfa/confirm", Body: `{"code":"1"}`,
			Status: 201, Parts: []string{`{"enabled":true,"recoveryCodes":["r1","r2"]}`}, Calls: []string{"ConfirmMFA 1"},
		},
		{
			As: edgetest.UserSession, Method: "POST", Path: "/user/mfa/disable", Body: `{"password":"right","code":"1"}`,
			Status: 201, Parts: []string{`{"enabled":false}`}, Calls: []string{"DisableMFA 1"},
		},
		{
			As: edgetest.UserSession, Method: "POST", Path: "/user/mfa/recovery-codes", Body: `{"code":"1"}`,
			Status: 201, Parts: []string{`"recoveryCodes":["r3"]`}, Calls: []string{"ReplaceRecoveryCodes 1"},
		},
		{As: edgetest.UserSession, Method: "GET", Path: "/user/mfa/policy", Status: 200, Parts: []string{`{"required":true}`}, Calls: []string{"MFAPolicy"}},
		{As: edgetest.AdminSession, Method: "PUT", Path: "/user/mfa/policy", Body: `{"required":false}`, Status: 200, Parts: []string{`{"required":false}`}, Calls: []string{"SetMFAPolicy false"}},
		{
			As: edgetest.UserSession, Method: "GET", Path: "/user/sessions",
			Status: 200, Parts: []string{`"id":"` + edgetest.SessionID.String() + `","current":true`, `"userAgent":"Browser"`}, Calls: []string{"ListSessions"},
		},
		{As: edgetest.UserSession, Method: "DELETE", Path: "/user/sessions", Status: 200, Parts: []string{`{"ended":2}`}, Calls: []string{"EndSessions"}},
		{As: edgetest.UserSession, Method: "DELETE", Path: "/user/sessions?id=s1", Status: 200, Parts: []string{`{"ended":2}`}, Calls: []string{"EndSessions s1"}},
		{
			As: edgetest.UserSession, Method: "GET", Path: "/user/identities",
			Status: 200, Parts: []string{`"provider":"GITHUB","createdAt":"2026-01-02T03:04:05.000Z"}]`}, Calls: []string{"Identities"},
		},
		{As: edgetest.UserSession, Method: "DELETE", Path: "/user/identities/i1", Status: 200, Parts: []string{`{"id":"i1"}`}, Calls: []string{"UnlinkIdentity i1"}},
		{As: edgetest.UserSession, Method: "DELETE", Path: "/user/identities/last", Status: 409, Parts: []string{"could not sign in"}},
	})
}
