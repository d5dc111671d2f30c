package signin_test

import (
	"strings"
	"testing"

	"crier/platform/fault"
	"crier/tests/edgetest"
)

func TestProvider_BeginGivesAddressAndState(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"FRONTEND_URL": "https://app.test/ui"})
	a := s.Call(t, "GET", "/auth/oauth/GITHUB", "")
	if a.Status != 200 || a.Body != "https://provider.test/authorize?x=1" || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("answered %d %q as %s, want the address as text", a.Status, a.Body, a.Header.Get("Content-Type"))
	}
	if c := edgetest.SetCookies(t, a)["oauth_state"]; c == nil || c.Value != edgetest.NewToken {
		t.Errorf("sets %v, want oauth_state", a.Header.Values("Set-Cookie"))
	}
	edgetest.Want(t, s.Call(t, "GET", "/auth/oauth/GOOGLE?redirect_uri=https://APP.test/ui/callback", "", "Cookie", "auth="+edgetest.UserSession), 200)
	// An expired session counts as no session.
	edgetest.Want(t, s.Call(t, "GET", "/auth/oauth/GENERIC", "", "auth", "over"), 200)
	s.WantCalls(t, "BeginSignIn GITHUB", "BeginSignIn GOOGLE https://APP.test/ui/callback "+edgetest.Ada, "BeginSignIn GENERIC")
	edgetest.Want(t, s.Call(t, "GET", "/auth/oauth/APPLE", ""), 404)
	for _, foreign := range []string{
		"https://evil.test/", "https://app.test.evil.test/", "//app.test/", "javascript:alert(1)", "/relative", "https://u@app.test/",
		"https://app.test:8443/", "https://app.test/" + strings.Repeat("a", 1000),
	} {
		edgetest.Want(t, s.Call(t, "GET", "/auth/oauth/GITHUB?redirect_uri="+foreign, ""), 400, "redirect_uri")
	}
	s.WantCalls(t)
}

func TestProvider_FinishSignsInRegistersOrLinks(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	const path = "/auth/oauth/GITHUB/exists"
	body := `{"code":"c","state":"st","iss":"https://issuer.test","redirect_uri":"` + edgetest.BaseURL + `/cb"}`
	a := s.Submit(t, path, body, "Cookie", "oauth_state=kept")
	edgetest.Want(t, a, 201, `{"login":true}`)
	if got := edgetest.CookieNames(edgetest.Unprefixed(t, edgetest.SetCookies(t, a))); got != "auth device -oauth_state" {
		t.Errorf("a sign-in sets %q", got)
	}
	a = s.Submit(t, path, `{"code":"stranger","state":"st"}`)
	edgetest.Want(t, a, 201, `{"token":"`+edgetest.NewToken+`"}`)
	if got := edgetest.CookieNames(edgetest.Unprefixed(t, edgetest.SetCookies(t, a))); got != "-oauth_state" {
		t.Errorf("a stranger gets %q", got)
	}
	a = s.Submit(t, path, `{"code":"c","state":"st"}`, "Cookie", "oauth_state=kept; auth="+edgetest.UserSession)
	edgetest.Want(t, a, 201, `{"linked":true,"login":true}`)
	if got := edgetest.CookieNames(edgetest.Unprefixed(t, edgetest.SetCookies(t, a))); got != "-oauth_state" || len(s.IDs) != 0 {
		t.Errorf("linking sets %q and ends %q, want the session to stay", got, s.IDs)
	}
	s.WantCalls(t, "FinishSignIn GITHUB c st kept https://issuer.test "+edgetest.BaseURL+"/cb", "FinishSignIn GITHUB stranger st",
		"FinishSignIn GITHUB c st kept   "+edgetest.Ada)
	s.Fail(fault.New(fault.Invalid, "fake", "The state is not that of your browser."))
	edgetest.Want(t, s.Submit(t, path, `{"code":"c","state":"st"}`), 400, "The state is not")
}

func TestAppCallback_RedirectsToApp(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"MOBILE_APP_SCHEME": "crier://callback"})
	a := s.Call(t, "GET", "/auth/oauth-mobile-callback?state=s%26t&code=a/b&evil=x", "")
	if got := a.Header.Get("Location"); a.Status != 302 || got != "crier://callback?code=a%2Fb&state=s%26t" {
		t.Errorf("answered %d to %q, want 302 to the app with code and state", a.Status, got)
	}
	a = s.Call(t, "GET", "/auth/oauth-mobile-callback?error=access_denied&state=s", "")
	if got := a.Header.Get("Location"); got != "crier://callback?error=access_denied&state=s" {
		t.Errorf("a refusal goes to %q", got)
	}
	edgetest.Want(t, edgetest.New(t, nil).Call(t, "GET", "/auth/oauth-mobile-callback?code=x&state=y", ""), 404, "no app")
}
