package oauth_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/tenancy"
	"crier/tests/edgetest"
)

// signInPage opens the sign-in page for a request and returns the address of its form.
func (r rig) signInPage(t *testing.T, query string) (action string) {
	t.Helper()
	a := r.browse(t, "/oauth/authorize?"+query, "")
	edgetest.Want(t, a, 200, "<h1>Sign in</h1>", "GitHub")
	action, _ = form(t, a)
	if !strings.HasPrefix(action, "/oauth/sign-in/authorize?") {
		t.Fatalf("the form leads to %q", action)
	}
	return action
}

func credentials(password string) url.Values {
	return url.Values{"step": {"password"}, "email": {edgetest.Ada}, "password": {password}}
}

// wantSignedIn fails the test unless a sets a session and leads back to the request.
func wantSignedIn(t *testing.T, a edgetest.Answer, query string) {
	t.Helper()
	at, err := url.Parse(a.Header.Get("Location"))
	want, _ := url.ParseQuery(query)
	want.Set("signed_in", "1")
	if err != nil || a.Status != http.StatusSeeOther || at.Host != "" || at.Path != "/oauth/authorize" || at.Query().Encode() != want.Encode() {
		t.Errorf("got %d to %q, want 303 to the request %s: %s", a.Status, a.Header.Get("Location"), query, a.Body)
	}
	if c := edgetest.SetCookies(t, a)["auth"]; c == nil || c.Value != edgetest.UserSession || !c.HttpOnly {
		t.Errorf("got the cookies %v, want a session", a.Header.Values("Set-Cookie"))
	}
}

func TestSignIn_ReturnsToRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	query := request("state", `a&b="<c>`, "scope", "mcp:read", "resource", "http://crier.test/mcp")
	action := r.signInPage(t, query)
	a := r.submit(t, action, "", credentials("right"))
	wantSignedIn(t, a, query)
	edgetest.Want(t, r.browse(t, a.Header.Get("Location"), edgetest.UserSession), 200, "Let Planner use your account?")
	a = r.submit(t, action, "planted", credentials("right"))
	wantSignedIn(t, a, query)
	if !strings.Contains(strings.Join(r.IDs, " "), "logout planted") {
		t.Errorf("the browser's earlier session goes on: %q", r.IDs)
	}
}

// A browser without cookies would show the sign-in page over and over.
func TestSignIn_NamesMissingCookies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for page, query := range map[string]string{"authorize": "?" + request(), "apps": "", "device": ""} {
		a := r.submit(t, "/oauth/sign-in/"+page+query, "", credentials("right"))
		again := r.browse(t, a.Header.Get("Location"), "")
		edgetest.Want(t, again, 200, "<h1>Sign in</h1>", "allow cookies for this site")
		action, _ := form(t, again)
		edgetest.Want(t, r.submit(t, action, "", credentials("wrong secret")), 400, "The e-mail address or the password is wrong.")
	}
	if a := r.browse(t, "/oauth/apps", ""); strings.Contains(a.Body, "cookies") {
		t.Errorf("the first sign-in page speaks of cookies: %s", a.Body)
	}
}

func TestSignIn_PromptAsksOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.browse(t, "/oauth/authorize?"+request("prompt", "login"), edgetest.UserSession)
	edgetest.Want(t, a, 200, "<h1>Sign in</h1>")
	action, _ := form(t, a)
	wantSignedIn(t, r.submit(t, action, edgetest.UserSession, credentials("right")), request())
}

func TestSignIn_WrongInputIsShownAtItsField(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	action := r.signInPage(t, request())
	a := r.submit(t, action, "", credentials("wrong secret"))
	edgetest.Want(t, a, 400, `value="ada@example.org"`, `aria-describedby="password-wrong"`, "The e-mail address or the password is wrong.",
		"Send the link again")
	if strings.Contains(a.Body, "wrong secret") || len(a.Header.Values("Set-Cookie")) != 0 {
		t.Errorf("the page keeps the password or sets a cookie: %s", a.Body)
	}
	if again, _ := form(t, a); again != action {
		t.Errorf("the form leads to %q now, want %q", again, action)
	}
	fields := credentials("right")
	fields.Set("email", `"><b>no address`)
	edgetest.Want(t, r.submit(t, action, "", fields), 400, `aria-describedby="email-wrong"`, `value="&#34;&gt;&lt;b&gt;no address"`)
	fields = credentials("")
	edgetest.Want(t, r.submit(t, action, "", fields), 400, `aria-describedby="password-wrong"`)
}

// TestSignIn_HasTheLimitsOfLogin: a guesser gains nothing by using the page.
func TestSignIn_HasTheLimitsOfLogin(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	action := r.signInPage(t, request())
	refused := 0
	for i := range 25 {
		a := r.submit(t, action, "", credentials(fmt.Sprint("wrong ", i)))
		if a.Status == http.StatusTooManyRequests {
			refused++
			if a.Header.Get("Retry-After") == "" {
				t.Errorf("got no Retry-After: %v", a.Header)
			}
			edgetest.Want(t, a, 429, "Too many failed sign-ins", `value="ada@example.org"`)
		}
	}
	if refused == 0 {
		t.Error("25 wrong passwords were all checked")
	}
	edgetest.Want(t, r.Submit(t, "/auth/login", edgetest.LoginBody), 429)
}

func TestSignIn_OtherSitesCannotSubmit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	action := r.signInPage(t, request())
	for _, headers := range [][]string{{"Origin", "https://evil.test"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}} {
		a := r.Call(t, "POST", action, credentials("right").Encode(),
			append([]string{"Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html"}, headers...)...)
		if a.Status != 403 || len(a.Header.Values("Set-Cookie")) != 0 {
			t.Errorf("%v: answered %d %v, want 403", headers, a.Status, a.Header)
		}
	}
}

func TestSignIn_NeverLeadsElsewhere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for path, status := range map[string]int{
		"/oauth/sign-in/authorize?next=https://evil.test&client_id=x": 303, "/oauth/sign-in/apps?next=//evil.test": 303,
		"/oauth/sign-in/device": 303, "/oauth/sign-in/evil.test": 404, "/oauth/sign-in/%2F%2Fevil.test": 404,
		"/oauth/sign-in/authorize?state=" + strings.Repeat("x", 7000): 404,
	} {
		a := r.submit(t, path, "", credentials("right"))
		if a.Status != status || strings.Contains(a.Header.Get("Location"), "evil.test") || strings.HasPrefix(a.Header.Get("Location"), "//") {
			t.Errorf("%.60s: answered %d to %q, want %d", path, a.Status, a.Header.Get("Location"), status)
		}
	}
}

func TestSignIn_SecondFactor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	action := r.signInPage(t, request())
	r.SetSignIn(tenancy.SignIn{Step: tenancy.StepMFA, Token: "step-token"})
	a := r.submit(t, action, "", credentials("right"))
	edgetest.Want(t, a, 200, "Enter your code")
	action, fields := form(t, a)
	if fields.Get("token") != "step-token" || strings.Contains(action, "step-token") {
		t.Errorf("the form has %v and leads to %q", fields, action)
	}
	r.TakeCalls()
	r.Fail(fault.New(fault.Unauthenticated, "fake", "The code is wrong."))
	fields.Set("step", "factor")
	fields.Set("code", "123 456")
	edgetest.Want(t, r.submit(t, action, "", fields), 401, "The code is wrong.", `value="123 456"`, `value="step-token"`, "Start over")
	r.WantCalls(t, "VerifyMFA step-token 123456")
	r.Fail(nil)
	r.SetSignIn(tenancy.SignIn{Session: edgetest.UserSession})
	wantSignedIn(t, r.submit(t, action, "", fields), request())
	r.WantCalls(t, "VerifyMFA step-token 123456")
	fields.Set("code", "aB3dE6gH9jK2mN5p")
	wantSignedIn(t, r.submit(t, action, "", fields), request())
	r.WantCalls(t, "VerifyMFA step-token  aB3dE6gH9jK2mN5p")
	fields.Set("code", " ")
	edgetest.Want(t, r.submit(t, action, "", fields), 400, `aria-describedby="code-wrong"`)
	r.WantCalls(t)
}

func TestSignIn_ForcedEnrollment(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	action := r.signInPage(t, request())
	r.SetSignIn(tenancy.SignIn{Step: tenancy.StepEnroll, Token: "step-token"})
	a := r.submit(t, action, "", credentials("right"))
	edgetest.Want(t, a, 200, "<code>SECRET</code>", `<a href="otpauth://totp/x">`)
	action, fields := form(t, a)
	fields.Set("step", "enroll")
	fields.Set("code", "000000")
	r.TakeCalls()
	r.Fail(fault.New(fault.Unauthenticated, "fake", "The code is wrong."))
	a = r.submit(t, action, "", fields)
	edgetest.Want(t, a, 401, "<code>SECRET</code>", `<a href="otpauth://totp/x">`, "The code is wrong.")
	r.WantCalls(t, "ConfirmEnrollment step-token 000000") // the secret stays the same
	r.Fail(nil)
	r.SetSignIn(tenancy.SignIn{Session: edgetest.UserSession, RecoveryCodes: []string{"code-one", "code-two"}})
	a = r.submit(t, action, "", fields)
	edgetest.Want(t, a, 200, "<code>code-one</code>", "<code>code-two</code>", `<a href="/oauth/authorize?`)
	if edgetest.SetCookies(t, a)["auth"] == nil {
		t.Errorf("got the cookies %v, want a session", a.Header.Values("Set-Cookie"))
	}
	fields.Set("secretUrl", "javascript:alert(1)")
	r.Fail(fault.New(fault.Unauthenticated, "fake", "The code is wrong."))
	a = r.Call(t, "POST", action, fields.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Origin", edgetest.BaseURL)
	if strings.Contains(a.Body, `href="javascript:`) {
		t.Errorf("the page links to a script: %s", a.Body)
	}
}

func TestSignIn_RestoresAccount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	action := r.signInPage(t, request())
	r.SetSignIn(tenancy.SignIn{Step: tenancy.StepRestore, Token: "step-token", Until: edgetest.Day})
	a := r.submit(t, action, "", credentials("right"))
	edgetest.Want(t, a, 200, "Keep the account", "2 January 2026")
	action, fields := form(t, a)
	fields.Set("step", "restore")
	r.SetSignIn(tenancy.SignIn{Session: edgetest.UserSession})
	wantSignedIn(t, r.submit(t, action, "", fields), request())
}

func TestSignIn_UnconfirmedAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	action := r.signInPage(t, request())
	fields := credentials("")
	fields.Set("step", "resend")
	r.TakeCalls()
	edgetest.Want(t, r.submit(t, action, "", fields), 200, "we have sent the link again", `value="ada@example.org"`)
	r.WantCalls(t, "ResendActivation ada@example.org")
	fields.Set("email", "no address")
	edgetest.Want(t, r.submit(t, action, "", fields), 400, `aria-describedby="email-wrong"`)
}

// provider begins a sign-in with GitHub and returns the cookies that it sets.
func (r rig) provider(t *testing.T, query string) (cookies string) {
	t.Helper()
	a := r.browse(t, "/oauth/sign-in/authorize/GITHUB?"+query, "")
	if a.Status != http.StatusFound || !strings.HasPrefix(a.Header.Get("Location"), "https://provider.test/") {
		t.Fatalf("got %d to %q: %s", a.Status, a.Header.Get("Location"), a.Body)
	}
	var out []string
	for name, c := range edgetest.SetCookies(t, a) {
		if !c.HttpOnly || c.MaxAge != int(tenancy.SignInStateLife/time.Second) {
			t.Errorf("the cookie %s is %v", name, c)
		}
		out = append(out, name+"="+c.Value)
	}
	return strings.Join(out, "; ")
}

func TestSignIn_WithProvider(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	query := request("state", `a&b="<c>`)
	cookies := r.provider(t, query)
	r.WantCalls(t, "BeginSignIn GITHUB http://crier.test/oauth/callback")
	back := "/oauth/callback?code=c&iss=i&state=" + edgetest.NewToken
	a := r.browse(t, back, "", "Cookie", cookies)
	wantSignedIn(t, a, query)
	r.WantCalls(t, "FinishSignIn GITHUB c made-token made-token i")
	for name, c := range map[string]struct {
		path, cookies string
		status        int
		part          string
	}{
		"no cookie":      {path: back, status: 400, part: "not started in this browser"},
		"another state":  {path: "/oauth/callback?code=c&state=other", cookies: cookies, status: 400, part: "not started in this browser"},
		"a planted page": {path: back, cookies: "oauth_state=made-token; oauth_return=x." + strings.SplitN(cookies, ".", 2)[1], status: 400, part: "not started"},
		"denied":         {path: "/oauth/callback?error=access_denied&state=" + edgetest.NewToken, cookies: cookies, status: 400, part: "did not sign you in"},
		"nobody by then": {path: "/oauth/callback?code=stranger&state=" + edgetest.NewToken, cookies: cookies, status: 400, part: "Nobody has registered"},
		"no such page":   {path: "/oauth/sign-in/other/GITHUB", status: 404},
		"not offered":    {path: "/oauth/sign-in/authorize/GOOGLE", status: 404},
		"a long request": {path: "/oauth/sign-in/authorize/GITHUB?" + request("state", strings.Repeat("x", 2000), "scope", strings.Repeat("y ", 900)), status: 400, part: "too long for this way"},
	} {
		a := r.browse(t, c.path, "", "Cookie", c.cookies)
		if a.Status != c.status || !strings.Contains(a.Body, c.part) || edgetest.SetCookies(t, a)["auth"] != nil {
			t.Errorf("%s: answered %d %s, want %d %s", name, a.Status, a.Body, c.status, c.part)
		}
	}
	r.SetSignIn(tenancy.SignIn{Step: tenancy.StepMFA, Token: "step-token"})
	edgetest.Want(t, r.browse(t, back, "", "Cookie", cookies), 200, "Enter your code", `value="step-token"`)
}
