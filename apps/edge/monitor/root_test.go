package monitor_test

import (
	"net/url"
	"strings"
	"testing"

	"crier/tests/edgetest"
)

func TestRoot_InvitationLinkRedirectsToDashboard(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	token := strings.Repeat("aB3", 14) + "z"
	a := s.Call(t, "GET", "/?org="+token, "", "Cookie", "auth="+edgetest.UserSession)
	if got := a.Header.Get("Location"); a.Status != 303 || got != edgetest.BaseURL+"/app/#org="+token {
		t.Errorf("answered %d to %q, want the dashboard with the token in the fragment", a.Status, got)
	}
	got := edgetest.SetCookies(t, a)
	if edgetest.CookieNames(got) != "org" || got["org"].Value != token || got["org"].MaxAge != 48*60*60 {
		t.Errorf("sets %v, want the invitation alone, for as long as it works", got)
	}
	s.WantCalls(t)
	for _, other := range []string{"", "x", token + "x", strings.Repeat("=", 43), "https://evil.test"} {
		a := s.Call(t, "GET", "/?org="+url.QueryEscape(other), "")
		if edgetest.Want(t, a, 200, "App is running!"); len(edgetest.SetCookies(t, a)) != 0 {
			t.Errorf("%q: sets %v, want nothing", other, edgetest.SetCookies(t, a))
		}
	}
}
