package edge_test

import (
	"strings"
	"testing"

	"crier/apps/edge"
	"crier/platform/env"
	"crier/platform/fault"
)

func TestProvider_BeginGivesAddressAndState(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"FRONTEND_URL": "https://app.test/ui"})
	a := s.call(t, "GET", "/auth/oauth/GITHUB", "")
	if a.status != 200 || a.body != "https://provider.test/authorize?x=1" || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
		t.Errorf("answered %d %q as %s, want the address as text", a.status, a.body, a.header.Get("Content-Type"))
	}
	if c := setCookies(t, a)["oauth_state"]; c == nil || c.Value != newToken {
		t.Errorf("sets %v, want oauth_state", a.header.Values("Set-Cookie"))
	}
	want(t, s.call(t, "GET", "/auth/oauth/GOOGLE?redirect_uri=https://APP.test/ui/callback", "", "Cookie", "auth="+goodSession), 200)
	want(t, s.call(t, "GET", "/auth/oauth/GENERIC", "", "auth", "over"), 200) // a session that is over is none
	s.wantCalls(t, "BeginSignIn GITHUB", "BeginSignIn GOOGLE https://APP.test/ui/callback "+ada, "BeginSignIn GENERIC")
	want(t, s.call(t, "GET", "/auth/oauth/APPLE", ""), 404)
	for _, foreign := range []string{"https://evil.test/", "https://app.test.evil.test/", "//app.test/", "javascript:alert(1)", "/relative", "https://u@app.test/", "https://app.test:8443/", "https://app.test/" + strings.Repeat("a", 1000)} {
		want(t, s.call(t, "GET", "/auth/oauth/GITHUB?redirect_uri="+foreign, ""), 400, "redirect_uri")
	}
	s.wantCalls(t)
}

func TestProvider_FinishSignsInRegistersOrLinks(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const path = "/auth/oauth/GITHUB/exists"
	body := `{"code":"c","state":"st","iss":"https://issuer.test","redirect_uri":"` + baseURL + `/cb"}`
	a := s.open(t, path, body, "Cookie", "oauth_state=kept")
	want(t, a, 201, `{"login":true}`)
	if got := names(unprefixed(t, setCookies(t, a))); got != "auth device -oauth_state" {
		t.Errorf("a sign-in sets %q", got)
	}
	a = s.open(t, path, `{"code":"stranger","state":"st"}`)
	want(t, a, 201, `{"token":"`+newToken+`"}`)
	if got := names(unprefixed(t, setCookies(t, a))); got != "-oauth_state" {
		t.Errorf("a stranger gets %q", got)
	}
	a = s.open(t, path, `{"code":"c","state":"st"}`, "Cookie", "oauth_state=kept; auth="+goodSession)
	want(t, a, 201, `{"linked":true,"login":true}`)
	if got := names(unprefixed(t, setCookies(t, a))); got != "-oauth_state" || len(s.ids) != 0 {
		t.Errorf("linking sets %q and ends %q, want the session to stay", got, s.ids)
	}
	s.wantCalls(t, "FinishSignIn GITHUB c st kept https://issuer.test "+baseURL+"/cb", "FinishSignIn GITHUB stranger st",
		"FinishSignIn GITHUB c st kept   "+ada)
	s.fail(fault.New(fault.Invalid, "fake", "The state is not that of your browser."))
	want(t, s.open(t, path, `{"code":"c","state":"st"}`), 400, "The state is not")
}

func TestAppCallback_RedirectsToApp(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"MOBILE_APP_SCHEME": "crier://callback"})
	a := s.call(t, "GET", "/auth/oauth-mobile-callback?state=s%26t&code=a/b&evil=x", "")
	if got := a.header.Get("Location"); a.status != 302 || got != "crier://callback?code=a%2Fb&state=s%26t" {
		t.Errorf("answered %d to %q, want 302 to the app with code and state", a.status, got)
	}
	a = s.call(t, "GET", "/auth/oauth-mobile-callback?error=access_denied&state=s", "")
	if got := a.header.Get("Location"); got != "crier://callback?error=access_denied&state=s" {
		t.Errorf("a refusal goes to %q", got)
	}
	want(t, start(t, nil).call(t, "GET", "/auth/oauth-mobile-callback?code=x&state=y", ""), 404, "no app")
}

func TestConfig_MobileScheme(t *testing.T) {
	t.Parallel()
	for scheme, valid := range map[string]bool{
		"": true, "crier://": true, "crier://callback": true, "com.example.app://sign-in/done": true,
		"http://evil.test": false, "https://evil.test": false, "javascript://alert": false, "data://x": false, "JavaScript://x": false,
		"crier:": false, "crier://x?y": false, "crier://x#y": false, "crier://a b": false, "crier://a\n": false, "file://x": false,
	} {
		vars := map[string]string{"MOBILE_APP_SCHEME": scheme}
		var cfg edge.Config
		err := env.Load(t.Context(), func(name string) (string, bool) { v, ok := vars[name]; return v, ok }, &cfg)
		if (err == nil) != valid {
			t.Errorf("%q: got the error %v, want it valid: %v", scheme, err, valid)
		}
	}
}

func TestEnterprise_AnswersOfContract(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	send := func() answer {
		return s.call(t, "POST", "/enterprise/create-user", `{"params":"jwt"}`, "Content-Type", "application/json", "Origin", "https://saas.test")
	}
	want(t, send(), 201, `{"id":"`+organization.String()+`","apiKey":"`+goodKey+`"}`)
	s.wantCalls(t, "CreateEnterpriseUser jwt")
	for kind, c := range map[fault.Kind]struct {
		status int
		body   string
	}{
		fault.Invalid: {status: 201, body: `{"success":false}`}, fault.Conflict: {status: 201, body: `{"create":false}`},
		fault.NotFound: {status: 404, body: "no such route"}, fault.Unavailable: {status: 503, body: "later"},
	} {
		s.fail(fault.New(kind, "fake", "no such route, or later"))
		want(t, send(), c.status, c.body)
	}
	if log := s.log.String(); strings.Count(log, "an enterprise request was refused") != 2 {
		t.Errorf("the log is %s, want two warnings", log)
	}
}
