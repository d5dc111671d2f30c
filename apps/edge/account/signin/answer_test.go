package signin_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/tenancy"
	"crier/tests/edgetest"
)

func TestSignIn_AnswersEachStep(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	for name, c := range edgetest.SignIns() {
		s := edgetest.New(t, nil)
		not := strings.Replace(c.Done, `"login":true`, `"login":false`, 1)
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
			s.SetSignIn(step.result)
			a := s.Submit(t, c.Path, c.Body)
			if a.Status != 201 || strings.TrimSpace(a.Body) != not+step.rest {
				t.Errorf("%s, %s: answered %d %s, want 201 %s", name, step.result.Step, a.Status, a.Body, not+step.rest)
			}
			got := edgetest.CookieNames(edgetest.Unprefixed(t, edgetest.SetCookies(t, a)))
			if strings.TrimPrefix(got, "-oauth_state") != "" || a.Header.Get("Reload")+a.Header.Get("Onboarding") != "" {
				t.Errorf("%s, %s: sets %s with %v, want no session", name, step.result.Step, got, a.Header)
			}
		}
		s.SetSignIn(tenancy.SignIn{Session: edgetest.UserSession, RecoveryCodes: []string{"r1", "r2"}})
		edgetest.Want(t, s.Submit(t, c.Path, c.Body), 201, c.Done, `"recoveryCodes":["r1","r2"]`)
	}
}

func TestSignIn_BeginsSession(t *testing.T) {
	t.Parallel()
	for name, c := range edgetest.SignIns() {
		s := edgetest.New(t, nil)
		a := s.Submit(t, c.Path, c.Body, "Cookie", "auth=an-old-one; impersonate=x; device=known")
		edgetest.Want(t, a, 201, c.Done)
		got := edgetest.SetCookies(t, a)
		state := ""
		if name == "provider" {
			state = " -oauth_state"
		}
		if want := "auth device -impersonate" + state; edgetest.CookieNames(edgetest.Unprefixed(t, got)) != want {
			t.Errorf("%s: sets %q, want %q", name, edgetest.CookieNames(got), want)
		}
		if got["auth"].Value != edgetest.UserSession || got["device"].Value != "device-token" || got["device"].MaxAge != 365*24*60*60 {
			t.Errorf("%s: sets %v", name, got)
		}
		if want := []string{"logout an-old-one"}; !slices.Equal(s.IDs, want) {
			t.Errorf("%s: sessions ended: %q, want that of the cookie", name, s.IDs)
		}
		if a.Header.Get("Reload") != "true" || a.Header.Get("Onboarding") != "" || s.From.Device != "known" || s.From.Client != "127.0.0.1" {
			t.Errorf("%s: got the headers %v and the source %+v", name, a.Header, s.From)
		}
		s.SetSignIn(tenancy.SignIn{Session: edgetest.UserSession, Onboarding: true, Org: edgetest.OrgID})
		a = s.Submit(t, c.Path, c.Body, "Cookie", "device=known; org=spent")
		got = edgetest.SetCookies(t, a)
		if a.Header.Get("Onboarding") != "true" || a.Header.Get("Reload") != "" || got["showorg"] == nil || got["showorg"].Value != edgetest.OrgID.String() {
			t.Errorf("%s of a new person: %v", name, a.Header)
		}
		if got["device"] == nil || got["device"].Value != "known" || got["org"] == nil || got["org"].Value != "" {
			t.Errorf("%s: sets %v, want the device for longer and the invitation deleted", name, got)
		}
	}
}

func TestSignIn_CookiesHaveAttributes(t *testing.T) {
	t.Parallel()
	for base, secure := range map[string]bool{"https://crier.test": true, "http://crier.test": true, "http://localhost:4000": false, "http://[::1]:4000": false} {
		s := edgetest.New(t, map[string]string{"BASE_URL": base})
		s.SetSignIn(tenancy.SignIn{Session: edgetest.UserSession, Device: "d", Org: edgetest.OrgID})
		json := []string{"Content-Type", "application/json", "Origin", base}
		all := edgetest.SetCookies(t, s.Call(t, "POST", "/auth/login", edgetest.LoginBody, append(json, "Cookie", "org=spent; impersonate=y")...))
		maps.Copy(all, edgetest.SetCookies(t, s.Call(t, "GET", "/auth/oauth/GITHUB", "")))
		want := "auth device -impersonate oauth_state -org showorg"
		if secure {
			want = "__Host-auth __Host-device -__Host-impersonate __Host-oauth_state " + want
		}
		if got := edgetest.CookieNames(all); got != want {
			t.Errorf("%s: sets %s", base, got)
		}
		for name, c := range all {
			if c.Secure != secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
				t.Errorf("%s: %s is %s, want secure: %v", base, name, c, secure)
			}
		}
		if c := all["oauth_state"]; c.MaxAge != 600 || c.Value != edgetest.NewToken {
			t.Errorf("oauth_state is %s, want 10 minutes", c)
		}
	}
}

// TestSignIn_OffersInvitationOfBrowser: the response to a completed sign-in describes the
// invitation in the cookie. Nobody joins, and the browser stays in its organization.
func TestSignIn_OffersInvitationOfBrowser(t *testing.T) {
	t.Parallel()
	const offer = `"invitation":{"organization":"Acme","role":"ADMIN"}`
	for name, c := range edgetest.SignIns() {
		s := edgetest.New(t, nil)
		for token, cookies := range map[string]string{
			"fresh": "auth device",
			"spent": "auth device -org",
			"later": "auth device",
		} {
			a := s.Submit(t, c.Path, c.Body, "Cookie", "showorg=mine; org="+token)
			edgetest.Want(t, a, 201, c.Done)
			got := edgetest.Unprefixed(t, edgetest.SetCookies(t, a))
			delete(got, "oauth_state")
			if edgetest.CookieNames(got) != cookies {
				t.Errorf("%s, %s: sets %q, want %q", name, token, edgetest.CookieNames(got), cookies)
			}
			if offered := strings.Contains(a.Body, "invitation"); offered != (token == "fresh") || offered && !strings.Contains(a.Body, offer) {
				t.Errorf("%s, %s: answered %s", name, token, a.Body)
			}
			if calls := s.TakeCalls(); len(calls) == 0 || calls[len(calls)-1] != "Offer "+edgetest.Ada+" "+token {
				t.Errorf("%s, %s: calls %q, want the look-up last", name, token, calls)
			}
		}
		for _, step := range []tenancy.Step{tenancy.StepMFA, tenancy.StepEnroll, tenancy.StepRestore} {
			s.SetSignIn(tenancy.SignIn{Step: step, Token: "t"})
			a := s.Submit(t, c.Path, c.Body, "Cookie", "org=fresh")
			if strings.Contains(a.Body, "invitation") || edgetest.SetCookies(t, a)["org"] != nil {
				t.Errorf("%s, %s: answered %s and sets %v, want nothing before the end", name, step, a.Body, edgetest.SetCookies(t, a))
			}
		}
	}
}

// TestSignIn_SameForKnownAndUnknownAddress compares whole responses except their ids, dates and
// times.
func TestSignIn_SameForKnownAndUnknownAddress(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{
		"/auth/login":             `{"email":%q,"password":"wrong"}`,
		"/auth/register":          `{"email":%q,"password":"correct horse","company":"Acme"}`,
		"/auth/forgot":            `{"email":%q}`,
		"/auth/resend-activation": `{"email":%q}`,
	} {
		s := edgetest.New(t, nil)
		s.SetSignIn(tenancy.SignIn{Step: tenancy.StepConfirm})
		shown := func(email string) string {
			a := s.Submit(t, path, fmt.Sprintf(body, email), "Cookie", "org=x; device=known-device")
			for _, varies := range []string{"X-Request-Id", "Date"} {
				a.Header.Del(varies)
			}
			return fmt.Sprint(a.Status, a.Header, a.Body)
		}
		if known, unknown := shown(edgetest.Ada), shown("nobody@example.org"); known != unknown {
			t.Errorf("%s: answered\n%s to a known address and\n%s to an unknown one", path, known, unknown)
		}
		calls := s.TakeCalls()
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
		s := edgetest.New(t, nil)
		a := s.Submit(t, c.path, c.body)
		if a.Status != c.status || !strings.Contains(a.Body, c.words) || len(a.Body) > 1000 {
			t.Errorf("%s: answered %d %.300s, want %d with %q", name, a.Status, a.Body, c.status, c.words)
		}
		s.WantCalls(t)
	}
}
