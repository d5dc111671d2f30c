package edge_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/tenancy"
)

// setCookies returns the cookies that an answer sets, by name, and fails the test if one is set twice.
func setCookies(t *testing.T, a answer) map[string]*http.Cookie {
	t.Helper()
	out := map[string]*http.Cookie{}
	for _, line := range a.header.Values("Set-Cookie") {
		c, err := http.ParseSetCookie(line)
		if err != nil {
			t.Fatal(err)
		}
		if out[c.Name] != nil {
			t.Errorf("the cookie %s is set twice", c.Name)
		}
		out[c.Name] = c
	}
	return out
}

// unprefixed returns the cookies without the prefix __Host-. A cookie with the prefix must equal
// its twin without the prefix.
func unprefixed(t *testing.T, cookies map[string]*http.Cookie) map[string]*http.Cookie {
	t.Helper()
	out := map[string]*http.Cookie{}
	for name, c := range cookies {
		plain, prefixed := strings.CutPrefix(name, "__Host-")
		if !prefixed {
			out[name] = c
			continue
		}
		if same := cookies[plain]; same == nil || same.Value != c.Value || same.MaxAge != c.MaxAge {
			t.Errorf("%s is not like the cookie without the prefix: %v", c, same)
		}
	}
	return out
}

// names returns the sorted names of cookies, those that are deleted with a minus.
func names(cookies map[string]*http.Cookie) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(cookies)) {
		if cookies[name].MaxAge < 0 {
			name = "-" + name
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// signIns are requests that complete a sign-in, with how their answers begin when it is complete.
var signIns = map[string]struct{ path, body, done string }{
	"log-in":       {path: "/auth/login", body: goodLogin, done: `{"login":true`},
	"verify":       {path: "/auth/mfa/verify", body: `{"mfaToken":"t","code":"123456"}`, done: `{"login":true`},
	"enrol":        {path: "/auth/mfa/enroll/confirm", body: `{"mfaToken":"t","code":"123456"}`, done: `{"login":true`},
	"restore":      {path: "/auth/restore", body: `{"token":"t"}`, done: `{"login":true`},
	"provider":     {path: "/auth/oauth/GITHUB/exists", body: `{"code":"c","state":"s"}`, done: `{"login":true`},
	"activation":   {path: "/auth/activate", body: `{"code":"c"}`, done: `{"can":true,"login":true`},
	"registration": {path: "/auth/register", body: goodRegistration, done: `{"register":true,"login":true`},
}

const goodRegistration = `{"provider":"LOCAL","email":" Ada@Example.org","password":"correct horse","company":"Acme","fullname":"Ada"}`

// TestRegister_UsesOnlyTheInvitationOfTheBody: somebody else's link can put an invitation into the
// cookie.
func TestRegister_UsesOnlyTheInvitationOfTheBody(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.signsIn(tenancy.SignIn{Step: tenancy.StepConfirm})
	a := s.open(t, "/auth/register", goodRegistration, "Cookie", "org=fresh")
	want(t, a, 201, `{"activate":true}`)
	if got := names(setCookies(t, a)); got != "" || a.header.Get("Activate") != "true" {
		t.Errorf("sets %q with %v, want activate only: the invitation is offered after the confirmation", got, a.header)
	}
	s.wantCalls(t, "Register "+ada+" Ada correct horse Acme")
	body := strings.Replace(goodRegistration, "{", `{"org":"of the body",`, 1)
	want(t, s.open(t, "/auth/register", body, "Cookie", "org=of-the-cookie"), 201)
	s.wantCalls(t, "Register "+ada+" Ada correct horse Acme of the body")
}

func (r *running) open(t *testing.T, path, body string, headers ...string) answer {
	t.Helper()
	return r.call(t, "POST", path, body, append([]string{"Content-Type", "application/json", "Origin", baseURL}, headers...)...)
}

func TestSignIn_AnswersEachStep(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	for name, c := range signIns {
		s := start(t, nil)
		not := strings.Replace(c.done, `"login":true`, `"login":false`, 1)
		for _, step := range []struct {
			result tenancy.SignIn
			rest   string
		}{
			{result: tenancy.SignIn{Step: tenancy.StepMFA, Token: "step"}, rest: `,"mfaRequired":true,"mfaToken":"step","methods":["totp","recovery"]}`},
			{result: tenancy.SignIn{Step: tenancy.StepEnroll, Token: "step"}, rest: `,"mfaEnrollmentRequired":true,"mfaToken":"step"}`},
			{
				result: tenancy.SignIn{Step: tenancy.StepRestore, Token: "step", Until: until},
				rest:   `,"deletionRequested":true,"restoreToken":"step","until":"2026-02-03T04:05:06.000Z"}`,
			},
		} {
			s.signsIn(step.result)
			a := s.open(t, c.path, c.body)
			if a.status != 201 || strings.TrimSpace(a.body) != not+step.rest {
				t.Errorf("%s, %s: answered %d %s, want 201 %s", name, step.result.Step, a.status, a.body, not+step.rest)
			}
			if got := names(unprefixed(t, setCookies(t, a))); strings.TrimPrefix(got, "-oauth_state") != "" || a.header.Get("Reload")+a.header.Get("Onboarding") != "" {
				t.Errorf("%s, %s: sets %s with %v, want no session", name, step.result.Step, got, a.header)
			}
		}
		s.signsIn(tenancy.SignIn{Session: goodSession, RecoveryCodes: []string{"r1", "r2"}})
		want(t, s.open(t, c.path, c.body), 201, c.done, `"recoveryCodes":["r1","r2"]`)
	}
}

func TestSignIn_BeginsSession(t *testing.T) {
	t.Parallel()
	for name, c := range signIns {
		s := start(t, nil)
		a := s.open(t, c.path, c.body, "Cookie", "auth=an-old-one; impersonate=x; device=known")
		want(t, a, 201, c.done)
		got := setCookies(t, a)
		state := ""
		if name == "provider" {
			state = " -oauth_state"
		}
		if want := "auth device -impersonate" + state; names(unprefixed(t, got)) != want {
			t.Errorf("%s: sets %q, want %q", name, names(got), want)
		}
		if got["auth"].Value != goodSession || got["device"].Value != "device-token" || got["device"].MaxAge != 365*24*60*60 {
			t.Errorf("%s: sets %v", name, got)
		}
		if want := []string{"logout an-old-one"}; !slices.Equal(s.ids, want) {
			t.Errorf("%s: sessions ended: %q, want that of the cookie", name, s.ids)
		}
		if a.header.Get("Reload") != "true" || a.header.Get("Onboarding") != "" || s.from.Device != "known" || s.from.Client != "127.0.0.1" {
			t.Errorf("%s: got the headers %v and the source %+v", name, a.header, s.from)
		}
		s.signsIn(tenancy.SignIn{Session: goodSession, Onboarding: true, Org: organization})
		a = s.open(t, c.path, c.body, "Cookie", "device=known; org=spent")
		got = setCookies(t, a)
		if a.header.Get("Onboarding") != "true" || a.header.Get("Reload") != "" || got["showorg"] == nil || got["showorg"].Value != organization.String() {
			t.Errorf("%s of a new person: %v", name, a.header)
		}
		if got["device"] == nil || got["device"].Value != "known" || got["org"] == nil || got["org"].Value != "" {
			t.Errorf("%s: sets %v, want the device for longer and the invitation deleted", name, got)
		}
	}
}

func TestSignIn_CookiesHaveAttributes(t *testing.T) {
	t.Parallel()
	for base, secure := range map[string]bool{"https://crier.test": true, "http://crier.test": true, "http://localhost:4000": false, "http://[::1]:4000": false} {
		s := start(t, map[string]string{"BASE_URL": base})
		s.signsIn(tenancy.SignIn{Session: goodSession, Device: "d", Org: organization})
		json := []string{"Content-Type", "application/json", "Origin", base}
		all := setCookies(t, s.call(t, "POST", "/auth/login", goodLogin, append(json, "Cookie", "org=spent; impersonate=y")...))
		maps.Copy(all, setCookies(t, s.call(t, "GET", "/auth/oauth/GITHUB", "")))
		want := "auth device -impersonate oauth_state -org showorg"
		if secure {
			want = "__Host-auth __Host-device -__Host-impersonate __Host-oauth_state " + want
		}
		if got := names(all); got != want {
			t.Errorf("%s: sets %s", base, got)
		}
		for name, c := range all {
			if c.Secure != secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
				t.Errorf("%s: %s is %s, want secure: %v", base, name, c, secure)
			}
		}
		if c := all["oauth_state"]; c.MaxAge != 600 || c.Value != newToken {
			t.Errorf("oauth_state is %s, want 10 minutes", c)
		}
	}
}

// TestSignIn_OffersInvitationOfBrowser: a completed sign-in says what the cookie offers. Nobody
// joins, and the browser stays in its organization.
func TestSignIn_OffersInvitationOfBrowser(t *testing.T) {
	t.Parallel()
	const offer = `"invitation":{"organization":"Acme","role":"ADMIN"}`
	for name, c := range signIns {
		s := start(t, nil)
		for token, cookies := range map[string]string{
			"fresh": "auth device",
			"spent": "auth device -org",
			"later": "auth device",
		} {
			a := s.open(t, c.path, c.body, "Cookie", "showorg=mine; org="+token)
			want(t, a, 201, c.done)
			got := unprefixed(t, setCookies(t, a))
			delete(got, "oauth_state")
			if names(got) != cookies {
				t.Errorf("%s, %s: sets %q, want %q", name, token, names(got), cookies)
			}
			if offered := strings.Contains(a.body, "invitation"); offered != (token == "fresh") || offered && !strings.Contains(a.body, offer) {
				t.Errorf("%s, %s: answered %s", name, token, a.body)
			}
			if calls := s.called(); len(calls) == 0 || calls[len(calls)-1] != "Offer "+ada+" "+token {
				t.Errorf("%s, %s: calls %q, want the look-up last", name, token, calls)
			}
		}
		for _, step := range []tenancy.Step{tenancy.StepMFA, tenancy.StepEnroll, tenancy.StepRestore} {
			s.signsIn(tenancy.SignIn{Step: step, Token: "t"})
			a := s.open(t, c.path, c.body, "Cookie", "org=fresh")
			if strings.Contains(a.body, "invitation") || setCookies(t, a)["org"] != nil {
				t.Errorf("%s, %s: answered %s and sets %v, want nothing before the end", name, step, a.body, setCookies(t, a))
			}
		}
	}
}

func TestJoinOrganization_ByTheCookie(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	session := "auth=" + goodSession
	a := s.open(t, "/user/join-org", `{}`, "Cookie", session+"; org=fresh")
	want(t, a, 201, `{"id":"`+organization.String()+`"}`)
	if got := names(setCookies(t, a)); got != "-org" {
		t.Errorf("sets %q, want the used invitation deleted", got)
	}
	a = s.open(t, "/user/join-org", `{"org":"spent"}`, "Cookie", session+"; org=fresh")
	want(t, a, 201, `{"id":null}`)
	if got := names(setCookies(t, a)); got != "" {
		t.Errorf("another invitation: sets %q, want the cookie to stay", got)
	}
	s.wantCalls(t, "JoinOrganization "+ada+" fresh", "JoinOrganization "+ada+" spent")
}

func TestRoot_LinkWithTokenInQueryLeadsToTheQuestion(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	token := strings.Repeat("aB3", 14) + "z"
	a := s.call(t, "GET", "/?org="+token, "", "Cookie", "auth="+goodSession)
	if got := a.header.Get("Location"); a.status != 303 || got != baseURL+"/app/#org="+token {
		t.Errorf("answered %d to %q, want the dashboard with the token in the fragment", a.status, got)
	}
	got := setCookies(t, a)
	if names(got) != "org" || got["org"].Value != token || got["org"].MaxAge != 48*60*60 {
		t.Errorf("sets %v, want the invitation alone, for as long as it works", got)
	}
	s.wantCalls(t)
	for _, other := range []string{"", "x", token + "x", strings.Repeat("=", 43), "https://evil.test"} {
		a := s.call(t, "GET", "/?org="+url.QueryEscape(other), "")
		if want(t, a, 200, "App is running!"); len(setCookies(t, a)) != 0 {
			t.Errorf("%q: sets %v, want nothing", other, setCookies(t, a))
		}
	}
}

// TestSignIn_SameForKnownAndUnknownAddress compares everything that an answer has, but its id, date and times.
func TestSignIn_SameForKnownAndUnknownAddress(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{
		"/auth/login":             `{"email":%q,"password":"wrong"}`,
		"/auth/register":          `{"email":%q,"password":"correct horse","company":"Acme"}`,
		"/auth/forgot":            `{"email":%q}`,
		"/auth/resend-activation": `{"email":%q}`,
	} {
		s := start(t, nil)
		s.signsIn(tenancy.SignIn{Step: tenancy.StepConfirm})
		shown := func(email string) string {
			a := s.open(t, path, fmt.Sprintf(body, email), "Cookie", "org=x; device=known-device")
			for _, varies := range []string{"X-Request-Id", "Date"} {
				a.header.Del(varies)
			}
			return fmt.Sprint(a.status, a.header, a.body)
		}
		if known, unknown := shown(ada), shown("nobody@example.org"); known != unknown {
			t.Errorf("%s: answered\n%s to a known address and\n%s to an unknown one", path, known, unknown)
		}
		calls := s.called()
		if path != "/auth/login" && len(calls) != 2 {
			t.Errorf("%s: calls %q, want one for each address", path, calls)
		}
	}
}

func TestSignIn_RefusesInvalidBodies(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 1<<20-200)
	for name, c := range map[string]struct {
		path, body string
		status     int
		words      string
	}{
		"no address":            {path: "/auth/register", body: `{"password":"correct horse","company":"Acme"}`, status: 400, words: "email must be"},
		"a short password":      {path: "/auth/register", body: `{"email":"a@b.test","password":"seven77","company":"Acme"}`, status: 400, words: "8 to 128"},
		"a provider's name":     {path: "/auth/register", body: `{"provider":"GITHUB","company":"Acme"}`, status: 400, words: "providerToken"},
		"a token of LOCAL":      {path: "/auth/register", body: `{"providerToken":"x","company":"Acme"}`, status: 400, words: "provider must"},
		"a name of 1 MB":        {path: "/auth/register", body: `{"email":"a@b.test","password":"correct horse","company":"` + long + `"}`, status: 413},
		"a name of 1,000":       {path: "/auth/register", body: `{"email":"a@b.test","password":"correct horse","company":"` + long[:1000] + `"}`, status: 400, words: "company"},
		"NUL in an address":     {path: "/auth/forgot", body: `{"email":"a\u0000@b.test"}`, status: 400, words: "email"},
		"bidi in an address":    {path: "/auth/forgot", body: `{"email":"a\u202e@b.test"}`, status: 400, words: "email"},
		"a list as an address":  {path: "/auth/forgot", body: `{"email":["a@b.test"]}`, status: 400, words: "email must be a string"},
		"no address to resend":  {path: "/auth/resend-activation", body: `{"email":"a"}`, status: 400, words: "email"},
		"another repetition":    {path: "/auth/forgot-return", body: `{"token":"token","password":"correct horse","repeatPassword":"x"}`, status: 400, words: "repeatPassword"},
		"a short new password":  {path: "/auth/forgot-return", body: `{"token":"token","password":"x","repeatPassword":"x"}`, status: 400, words: "password must be 8 to 128"},
		"both codes":            {path: "/auth/mfa/verify", body: `{"mfaToken":"t","code":"1","recoveryCode":"2"}`, status: 400, words: "code"},
		"no code":               {path: "/auth/mfa/verify", body: `{"mfaToken":"t"}`, status: 400, words: "code"},
		"a number as a code":    {path: "/auth/mfa/verify", body: `{"mfaToken":"t","code":123456}`, status: 400, words: "code must be a string"},
		"a foreign callback":    {path: "/auth/oauth/GITHUB/exists", body: `{"code":"c","state":"s","redirect_uri":"https://evil.test/"}`, status: 400, words: "redirect_uri"},
		"no state":              {path: "/auth/oauth/GITHUB/exists", body: `{"code":"c"}`, status: 400, words: "state is required"},
		"no token to confirm":   {path: "/auth/confirm-email", body: `{}`, status: 400, words: "token is required"},
		"an empty restoreToken": {path: "/auth/restore", body: `{"token":""}`, status: 400, words: "token"},
	} {
		s := start(t, nil)
		a := s.open(t, c.path, c.body)
		if a.status != c.status || !strings.Contains(a.body, c.words) || len(a.body) > 1000 {
			t.Errorf("%s: answered %d %.300s, want %d with %q", name, a.status, a.body, c.status, c.words)
		}
		s.wantCalls(t)
	}
}

func TestRegister_LongestNamesFit(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	name, letter := strings.Repeat(`\ud83d\ude00`, 128), `\u0061`
	body := fmt.Sprintf(`{"email":"%s@%s.test","password":"%s","company":"%s","fullname":"%s","org":"%s"}`,
		strings.Repeat(letter, 64), strings.Repeat(letter, 180), name, name, name, strings.Repeat("x", 43))
	want(t, s.open(t, "/auth/register", body), 201)
	if calls := s.called(); len(calls) != 1 || strings.Count(calls[0], "😀") != 3*128 {
		t.Errorf("calls %.200q, want one with the whole names", calls)
	}
}

func TestRecovery_AnswersOfLinks(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	want(t, s.call(t, "GET", "/auth/can-register", ""), 200, `{"register":true}`)
	want(t, s.open(t, "/auth/activate", `{"code":"used"}`), 201, `{"can":false}`)
	want(t, s.open(t, "/auth/activate", `{"code":"another-browser"}`), 201, `{"can":false,"passwordRequired":true}`)
	want(t, s.open(t, "/auth/forgot", `{"email":"ADA@example.org "}`), 201, `{"forgot":true}`)
	want(t, s.open(t, "/auth/resend-activation", `{"email":"ada@example.org"}`), 201, `{"success":true}`)
	reset := `{"token":%q,"password":"correct horse","repeatPassword":"correct horse"}`
	want(t, s.open(t, "/auth/forgot-return", fmt.Sprintf(reset, "token")), 201, `{"reset":true}`)
	want(t, s.open(t, "/auth/forgot-return", fmt.Sprintf(reset, "used-token")), 201, `{"reset":false}`)
	want(t, s.open(t, "/auth/confirm-email", `{"token":"t"}`), 201, `{"confirmed":true,"changed":true}`)
	want(t, s.open(t, "/auth/mfa/enroll/begin", `{"mfaToken":"t"}`), 201, `{"secret":"SECRET","otpauthUrl":"otpauth://totp/x"}`)
	s.wantCalls(t, "CanRegister", "Activate used", "Activate another-browser", "Forgot ada@example.org", "ResendActivation ada@example.org",
		"ResetPassword token correct horse", "ResetPassword used-token correct horse", "ConfirmAddress t", "BeginEnrollment t")
	s.fail(fault.New(fault.Gone, "fake", "The link is over."))
	want(t, s.open(t, "/auth/confirm-email", `{"token":"t"}`), 410, "The link is over.")
}

// TestUnsubscribe_ByMailProgramAndByPerson: RFC 8058 lets programs post a form without cookies and Origin.
func TestUnsubscribe_ByMailProgramAndByPerson(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const path = "/auth/unsubscribe?token=mail-token"
	page := s.call(t, "GET", path, "", "Accept", "text/html")
	want(t, page, 200, `<form method="post">`)
	want(t, page, 200, "mails about posts that fail and channels that must be connected again?")
	if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self'") || !strings.HasPrefix(policy, "default-src 'none'") {
		t.Errorf("the policy is %q", policy)
	}
	s.wantCalls(t) // a program that follows links changes nothing
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	want(t, s.call(t, "POST", path, "List-Unsubscribe=One-Click", form...), 201, `{"unsubscribed":true}`)
	want(t, s.call(t, "POST", path, "", append(form, "Accept", "text/html,*/*;q=0.5")...), 201, "no more mails about posts that fail and channels")
	s.wantCalls(t, "Unsubscribe mail-token", "Unsubscribe mail-token")
	for _, bad := range []string{"/auth/unsubscribe", "/auth/unsubscribe?token=nope"} {
		want(t, s.call(t, "POST", bad, "", form...), 404)
		want(t, s.call(t, "GET", bad, ""), 404)
	}
}

// TestSecrets_AreNotLogged greps the log for everything secret that requests and answers carry.
func TestSecrets_AreNotLogged(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, c := range signIns {
		s.open(t, c.path, c.body, "Cookie", "org=cookie-invitation; device=cookie-device; auth=cookie-session")
	}
	s.call(t, "POST", "/auth/unsubscribe?token=mail-token-x", "")
	s.call(t, "GET", "/auth/oauth-mobile-callback?code=query-code&state=query-state", "")
	s.open(t, "/auth/login", `{"email":"ada@example.org","password":"hunter22-wrong"}`)
	s.open(t, "/auth/mfa/verify", `{"mfaToken":"body-mfa-token","recoveryCode":"recovery-code-1"}`)
	s.open(t, "/user/change-password", `{"oldPassword":"hunter22-old","newPassword":"hunter22-new"}`, "auth", goodSession)
	s.open(t, "/settings/api-keys", `{"name":"n"}`, "auth", adminSession)
	log := s.log.String()
	if !strings.Contains(log, "/auth/unsubscribe") || !strings.Contains(log, "a proof of identity failed") {
		t.Fatalf("the log lacks the requests: %s", log)
	}
	for _, secret := range []string{
		"cookie-invitation", "cookie-device", "cookie-session", "mail-token-x", "query-code", "query-state", "hunter22", "body-mfa-token",
		"recovery-code-1", goodSession, adminSession, goodKey, "correct horse", newToken, ada,
	} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}
