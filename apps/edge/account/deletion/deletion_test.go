package deletion_test

import (
	"testing"

	"crier/tests/edgetest"
)

func TestAccounts_EveryRoute(t *testing.T) {
	t.Parallel()
	edgetest.CheckExchanges(t, []edgetest.Exchange{
		{
			As: edgetest.UserSession, Method: "POST", Path: "/user/restore-organization", Body: `{"id":"o1"}`,
			Status: 201, Parts: []string{`{"restored":true}`}, Calls: []string{"RestoreOrganization o1"},
		},
		{As: edgetest.UserSession, Method: "POST", Path: "/settings/delete-account", Body: `{"password":"right","confirm":"yes"}`, Status: 400, Parts: []string{"confirm must be one of"}},
		{
			As: edgetest.OwnerSession, Method: "POST", Path: "/settings/delete-organization", Body: `{"password":"right","confirm":"DELETE"}`,
			Status: 201, Parts: []string{`{"deleted":true}`}, Calls: []string{"DeleteOrganization"},
		},
	})
}

func TestDeletion_ClearsCookies(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	body := `{"password":"right","confirm":"DELETE"}`
	a := s.Call(t, "POST", "/settings/delete-account", body, "Content-Type", "application/json", "auth", edgetest.UserSession)
	edgetest.Want(t, a, 201, `{"deleted":true}`)
	if got := edgetest.CookieNames(edgetest.Unprefixed(t, edgetest.SetCookies(t, a))); got != "-auth -impersonate -showorg" || a.Header.Get("Logout") != "true" {
		t.Errorf("an account: sets %q with logout %q", got, a.Header.Get("Logout"))
	}
	a = s.Call(t, "POST", "/settings/delete-organization", body, "Content-Type", "application/json", "auth", edgetest.OwnerSession)
	if got := edgetest.CookieNames(edgetest.SetCookies(t, a)); a.Status != 201 || got != "-showorg" || a.Header.Get("Logout") != "" {
		t.Errorf("an organization: answered %d, sets %q with logout %q", a.Status, got, a.Header.Get("Logout"))
	}
	s.WantCalls(t, "DeleteAccount", "DeleteOrganization")
}

func TestDeletion_IsRefusedWhileImpersonating(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	body := `{"password":"right","confirm":"DELETE"}`
	a := s.Call(t, "POST", "/settings/delete-account", body, "Content-Type", "application/json", "auth", edgetest.ImpersonatorSession)
	edgetest.Want(t, a, 400, "Stop impersonating first")
	if got := edgetest.CookieNames(edgetest.SetCookies(t, a)); got != "" {
		t.Errorf("sets %q, want no cookie", got)
	}
	s.WantCalls(t)
}
