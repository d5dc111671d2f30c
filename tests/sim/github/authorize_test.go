package github

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestAuthorize_RedirectsWithCodeAndState(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	target, query := r.authorize(nil)
	if target != callback || query.Get("state") != "xyz" || query.Get("code") == "" || len(query) != 2 {
		t.Errorf("got %s with %v, want %s with code and state", target, query, callback)
	}
	_, query = r.authorize(map[string]string{"state": "-", "redirect_uri": "-"})
	if query.Has("state") || query.Get("code") == "" {
		t.Errorf("got %v for a request without state, want a code only", query)
	}
}

func TestAuthorize_RefusalsAreRedirects(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		changes map[string]string
		want    string
	}{
		"unregistered redirect":    {map[string]string{"redirect_uri": "https://evil.example/callback"}, "redirect_uri_mismatch"},
		"subdirectory":             {map[string]string{"redirect_uri": callback + "/sub"}, "redirect_uri_mismatch"},
		"implicit grant":           {map[string]string{"response_type": "token"}, "unsupported_response_type"},
		"unknown scope":            {map[string]string{"scope": "email"}, "invalid_scope"},
		"method without challenge": {map[string]string{"code_challenge": "-"}, "invalid_request"},
		"challenge without method": {map[string]string{"code_challenge_method": "-"}, "invalid_request"},
		"plain challenge":          {map[string]string{"code_challenge_method": "plain"}, "invalid_request"},
		"short challenge":          {map[string]string{"code_challenge": "short"}, "invalid_request"},
		"padded challenge":         {map[string]string{"code_challenge": challenge() + "="}, "invalid_request"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, Options{})
			target, query := r.authorize(c.changes)
			if target != callback || query.Get("error") != c.want || query.Get("state") != "xyz" || query.Has("code") {
				t.Errorf("got %s with %v, want %s with error %s and the state", target, query, callback, c.want)
			}
			if query.Get("error_description") == "" {
				t.Errorf("got no error_description in %v", query)
			}
		})
	}
}

func TestAuthorize_DocumentedRefusals(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	r.p.SetConsent(Consent{Answer: AnswerDeny})
	_, query := r.authorize(nil)
	text := "The user has denied your application access."
	if query.Get("error") != "access_denied" || query.Get("error_description") != text ||
		!strings.HasSuffix(query.Get("error_uri"), "#access-denied") {
		t.Errorf("got %v, want access_denied as documented", query)
	}
	r.must(r.p.AddApp(App{
		ClientID: clientID, Secret: secret, Callbacks: []Callback{{URL: callback}}, Suspended: true,
	}))
	if _, query = r.authorize(nil); query.Get("error") != "application_suspended" {
		t.Errorf("got %v for a suspended app, want application_suspended", query)
	}
}

func TestAuthorize_RefusalsWithoutAppArePages(t *testing.T) {
	t.Parallel()
	r := start(t, Options{MismatchPage: true})
	cases := map[string]struct {
		path string
		want int
	}{
		"unknown client":        {authorizePath(map[string]string{"client_id": "other"}), http.StatusNotFound},
		"missing client":        {authorizePath(map[string]string{"client_id": "-"}), http.StatusNotFound},
		"repeated parameter":    {authorizePath(nil) + "&state=second", http.StatusBadRequest},
		"malformed query":       {pathAuthorize + "?client_id=%zz", http.StatusBadRequest},
		"redirect on a page":    {authorizePath(map[string]string{"redirect_uri": "https://evil.example"}), http.StatusOK},
		"trailing slash":        {pathAuthorize + "/", http.StatusNotFound},
		"GET of the token path": {pathToken, http.StatusNotFound},
	}
	for name, c := range cases {
		got := r.send(http.MethodGet, c.path, "", nil)
		if got.status != c.want || got.header.Get("Location") != "" {
			t.Errorf("%s: got status %d to %q, want %d without a redirect", name, got.status, got.header.Get("Location"), c.want)
		}
	}
}

var requestField = regexp.MustCompile(`name="request" value="([a-z0-9]+)"`)

// form requests a form and returns the fields that authorize everything.
func (r *rig) form(changes map[string]string) url.Values {
	r.t.Helper()
	got := r.send(http.MethodGet, authorizePath(changes), "", nil)
	found := requestField.FindStringSubmatch(got.body)
	if got.status != http.StatusOK || found == nil {
		r.t.Fatalf("got status %d and %q, want a form", got.status, got.body)
	}
	return url.Values{
		"request": {found[1]}, "user": {"7"}, "decision": {"authorize"}, "scope": {"read:user", "user:email"},
	}
}

func (r *rig) submit(form url.Values) reply {
	r.t.Helper()
	return r.send(http.MethodPost, pathAuthorize, form.Encode(),
		map[string]string{"Content-Type": "application/x-www-form-urlencoded"})
}

func TestAuthorize_FormGrantsChosenScopes(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	r.p.SetConsent(Consent{})
	form := r.form(nil)
	form["scope"] = []string{"user:email", "repo"}
	got := r.submit(form)
	_, query := r.location(got)
	if _, token := r.exchange(query.Get("code"), nil); token.Scope != "user:email" {
		t.Errorf("got the scope %q, want the one that was requested and chosen", token.Scope)
	}
	if again := r.submit(form); again.status != http.StatusBadRequest {
		t.Errorf("got status %d for a form sent twice, want 400", again.status)
	}
}

func TestAuthorize_FormCancels(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	r.must(r.p.SignIn())
	form := r.form(nil)
	form.Set("decision", "cancel")
	if _, query := r.location(r.submit(form)); query.Get("error") != "access_denied" {
		t.Errorf("got %v, want access_denied", query)
	}
	form = r.form(nil)
	r.advance(codeLife)
	if got := r.submit(form); got.status != http.StatusBadRequest {
		t.Errorf("got status %d for an old form, want 400", got.status)
	}
	form = r.form(nil)
	form.Set("user", "99")
	if got := r.submit(form); got.status != http.StatusBadRequest {
		t.Errorf("got status %d for an unknown account, want 400", got.status)
	}
}

func TestAuthorize_EarlierGrantNeedsNoForm(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	r.code(map[string]string{"scope": "user"})
	r.code(map[string]string{"scope": "gist user:email"})
	r.p.SetConsent(Consent{})
	if got := r.token("user:email"); got == "" {
		t.Error("got no token for a scope that an authorized one includes")
	}
	_, all := r.exchange(r.code(map[string]string{"scope": "-"}), nil)
	if all.Scope != "user,gist" {
		t.Errorf("got the scope %q for a request without scope, want all that were authorized", all.Scope)
	}
	r.form(map[string]string{"scope": "repo"})
	r.form(map[string]string{"prompt": "select_account"})
	r.p.Revoke(7)
	r.form(map[string]string{"scope": "user:email"})
}

func TestAuthorize_LoginSelectsSignedInAccount(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	r.must(r.p.SetUser(User{ID: 8, Login: "hubot", Emails: []Email{{Email: "h@example.org", Primary: true, Verified: true}}}))
	r.must(r.p.SignIn(7, 8))
	for login, want := range map[string]string{"hubot": "hubot", "octocat": "octocat", "nobody": "octocat"} {
		_, token := r.exchange(r.code(map[string]string{"login": login}), nil)
		if got := decodeAs[publicUser](r, r.get(pathUser, token.AccessToken)); got.Login != want {
			t.Errorf("got the user %q for the login %q, want %q", got.Login, login, want)
		}
	}
}

func TestAuthorize_ConsentWithholdsScopes(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	r.p.SetConsent(Consent{Answer: AnswerAccept, Withhold: []string{"user:email"}})
	_, token := r.exchange(r.code(nil), nil)
	if token.Scope != "read:user" {
		t.Errorf("got the scope %q, want read:user", token.Scope)
	}
}

func TestMatchRedirect_FollowsDocumentedExamples(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ exact, wildcard bool }{
		"https://example.com/path":                    {true, true},
		"https://example.com/path/subdir/other":       {false, true},
		"https://oauth.example.com/path":              {false, true},
		"https://oauth.example.com/path/subdir/other": {false, true},
		"https://example.com:443/path":                {false, true},
		"https://example.com/bar":                     {},
		"https://example.com/pathology":               {},
		"https://example.com/path/../bar":             {},
		"https://example.com/path/%2e%2e/bar":         {},
		"https://example.com/path?next=1":             {},
		"https://example.com/path#part":               {},
		"https://example.com/":                        {},
		"https://example.com:8080/path":               {},
		"https://oauth.example.com:8080/path":         {},
		"https://example.org":                         {},
		"https://notexample.com/path":                 {},
		"https://example.com@evil.example/path":       {},
		"http://example.com/path":                     {},
		"javascript:alert(1)":                         {},
		"/path":                                       {},
	}
	for redirect, want := range cases {
		for _, wildcard := range []bool{false, true} {
			app := App{Callbacks: []Callback{{URL: "https://example.com/path", Wildcard: wildcard}}}
			_, refusal, ok := app.matchRedirect(redirect)
			expected := want.exact && !wildcard || want.wildcard && wildcard
			if ok != expected || ok && refusal != "https://example.com/path" {
				t.Errorf("%s: got %t with refusals to %q and wildcard %t, want %t", redirect, ok, refusal, wildcard, expected)
			}
		}
	}
}

func TestMatchRedirect_LoopbackPortMayDiffer(t *testing.T) {
	t.Parallel()
	app := App{Callbacks: []Callback{{URL: callback}, {URL: "http://127.0.0.1/path"}}}
	for redirect, want := range map[string]bool{
		"http://127.0.0.1:1234/path": true, "http://127.0.0.1:1234/other": false,
		"http://localhost:1234/path": false, "https://127.0.0.1:1234/path": false, callback: true,
	} {
		success, refusal, ok := app.matchRedirect(redirect)
		if ok != want || ok && (success != redirect || refusal != redirect) {
			t.Errorf("%s: got %t to %q and %q, want %t", redirect, ok, success, refusal, want)
		}
	}
}

func TestParseScopes_Normalizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"user,gist,user:email": "user,gist", "read:org admin:org": "admin:org", "": "",
		"user:email user:email": "user:email", "offline_access user:email": "user:email",
	} {
		got, ok := parseScopes(text)
		if !ok || strings.Join(got, ",") != want {
			t.Errorf("%q: got %v and %t, want %s", text, got, ok, want)
		}
	}
	if got, ok := parseScopes("user:email openid"); ok {
		t.Errorf("got %v for an unknown scope, want a refusal", got)
	}
}

func TestAuthorize_CodeExpiresAfterTenMinutes(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	early, late := r.code(nil), r.code(nil)
	r.advance(10*time.Minute - time.Second)
	if _, got := r.exchange(early, nil); got.AccessToken == "" {
		t.Errorf("got %+v just before the expiry, want a token", got)
	}
	r.advance(time.Second)
	if _, got := r.exchange(late, nil); got.Error != "bad_verification_code" {
		t.Errorf("got %+v at the expiry, want bad_verification_code", got)
	}
}
