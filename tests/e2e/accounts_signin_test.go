package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"crier/tests/call"
	"crier/tests/oidctest"
	"crier/tests/sim/github"
)

const (
	callbackURL = frontendURL + "/auth/callback"
	generic     = "GENERIC"
	gitHub      = "GITHUB"
)

// startIssuer runs an OpenID provider on loopback and returns it with its URL.
func startIssuer(t *testing.T) (*oidctest.Provider, string) {
	t.Helper()
	var handler atomic.Pointer[oidctest.Provider]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.Load().ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	handler.Store(oidctest.New(t, server.URL, callbackURL))
	return handler.Load(), server.URL
}

// startWithIssuer starts an instance that uses the provider. Servers that the instance itself calls
// need no OUTBOUND_ALLOW.
func startWithIssuer(t *testing.T, issuer string) *instance {
	t.Helper()
	return startInstance(t, map[string]string{
		"OIDC_ISSUER": issuer, "OIDC_CLIENT_ID": oidctest.ClientID, "OIDC_CLIENT_SECRET": oidctest.ClientSecret,
	})
}

// beginAt begins a sign-in with a provider and returns the provider's address for it.
func (b *browser) beginAt(t *testing.T, provider string) string {
	t.Helper()
	a := b.ask(t, http.MethodGet, "/auth/oauth/"+provider+"?redirect_uri="+url.QueryEscape(callbackURL), nil)
	if a.Status != http.StatusOK || b.cookies["oauth_state"] == "" {
		t.Fatalf("begin a sign-in at %s: got %v, want an address and the cookie oauth_state", provider, a)
	}
	if state := queryOf(t, a.Body).Get("state"); state != b.cookies["oauth_state"] {
		t.Fatalf("got the state %q in the address and %q in the cookie", state, b.cookies["oauth_state"])
	}
	return a.Body
}

func queryOf(t *testing.T, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

// finishAt sends what the browser brought back from a provider.
func (b *browser) finishAt(t *testing.T, provider string, back url.Values, more m) call.Answer {
	t.Helper()
	body := m{"code": back.Get("code"), "state": back.Get("state"), "redirect_uri": callbackURL}
	if iss := back.Get("iss"); iss != "" {
		body["iss"] = iss
	}
	for name, value := range more {
		body[name] = value
	}
	return b.ask(t, http.MethodPost, "/auth/oauth/"+provider+"/exists", body)
}

// wantRefusal checks that a sign-in was refused with the status, and that the browser has no
// session.
func wantRefusal(t *testing.T, what string, b *browser, got call.Answer, status int) {
	t.Helper()
	if got.Status != status || b.cookies["auth"] != "" || strings.Contains(got.Body, `"token"`) {
		t.Errorf("%s: got %v, want %d and no session", what, got, status)
	}
}

func TestAccounts_OpenIDConnect(t *testing.T) {
	t.Parallel()
	provider, issuer := startIssuer(t)
	s := startWithIssuer(t, issuer)
	b := s.browse()
	back := provider.SignIn(t, b.beginAt(t, generic), "ada")
	var claim, made signInAnswer
	if err := b.on(1).finishAt(t, generic, back, nil).Into(&claim); err != nil || claim.Token == "" || b.cookies["auth"] != "" {
		t.Fatalf("first sign-in: got %+v, %v, want a token to register with and no session", claim, err)
	}
	b.want(t, http.StatusCreated, &made, http.MethodPost, "/auth/register",
		m{"provider": generic, "providerToken": claim.Token, "company": "Engines"})
	got := b.on(1).self(t)
	if !made.Register || !made.Login || got.Email != "ada@example.com" || got.Name != "Ada Byron" || !got.Verified {
		t.Errorf("got %+v with the person %+v, want the verified person of the provider", made, got)
	}
	b.ask(t, http.MethodPost, "/user/logout", nil)
	var signedIn signInAnswer
	back = provider.SignIn(t, b.on(1).beginAt(t, generic), "ada")
	if err := b.finishAt(t, generic, back, nil).Into(&signedIn); err != nil || !signedIn.Login || signedIn.Token != "" {
		t.Fatalf("second sign-in: got %+v, %v, want a session", signedIn, err)
	}
	if again := b.on(1).self(t); again.ID != got.ID {
		t.Errorf("got the person %s, want %s", again.ID, got.ID)
	}
	reused := s.browse()
	a := reused.ask(t, http.MethodPost, "/auth/register", m{"provider": generic, "providerToken": claim.Token, "company": "Again"})
	wantRefusal(t, "the token of the registration again", reused, a, http.StatusBadRequest)
}

func TestAccounts_OpenIDConnectRefusals(t *testing.T) {
	t.Parallel()
	provider, issuer := startIssuer(t)
	s := startWithIssuer(t, issuer)
	s.account(t, "ada@example.com")

	b := s.browse()
	back := provider.SignIn(t, b.beginAt(t, generic), "ada")
	wantRefusal(t, "wrong state", b, b.finishAt(t, generic, back, m{"state": strings.Repeat("A", 43)}), http.StatusBadRequest)
	other := s.browse()
	wantRefusal(t, "no cookie", other, other.finishAt(t, generic, back, nil), http.StatusBadRequest)
	other.beginAt(t, generic)
	wantRefusal(t, "another browser's cookie", other, other.finishAt(t, generic, back, nil), http.StatusBadRequest)
	wantRefusal(t, "an address that has an account", b, b.finishAt(t, generic, back, nil), http.StatusConflict)
	wantRefusal(t, "the state again", b, b.finishAt(t, generic, back, nil), http.StatusBadRequest)

	used := s.browse()
	first := provider.SignIn(t, used.beginAt(t, generic), "bob")
	if a := used.finishAt(t, generic, first, nil); a.Status != http.StatusCreated {
		t.Fatalf("sign-in of bob: got %v", a)
	}
	second := provider.SignIn(t, used.beginAt(t, generic), "bob")
	wantRefusal(t, "the code again", used, used.finishAt(t, generic, second, m{"code": first.Get("code")}), http.StatusBadRequest)

	mixed := s.browse()
	back = provider.SignIn(t, mixed.beginAt(t, generic), "ada")
	a := mixed.finishAt(t, generic, back, m{"iss": "https://attacker.example"})
	wantRefusal(t, "the issuer of another provider", mixed, a, http.StatusBadRequest)
	back = provider.SignIn(t, mixed.beginAt(t, generic), "ada")
	wantRefusal(t, "a provider that the instance has not", mixed, mixed.finishAt(t, gitHub, back, nil), http.StatusNotFound)
	wrongURI := mixed.finishAt(t, generic, back, m{"redirect_uri": "https://attacker.example/callback"})
	wantRefusal(t, "another site's callback", mixed, wrongURI, http.StatusBadRequest)
	begun := mixed.ask(t, http.MethodGet, "/auth/oauth/GENERIC?redirect_uri=https://attacker.example", nil)
	if begun.Status != http.StatusBadRequest {
		t.Errorf("begin with another site's callback: got %v, want 400", begun)
	}
}

func TestAccounts_OpenIDConnectUnverifiedAddress(t *testing.T) {
	t.Parallel()
	provider, issuer := startIssuer(t)
	s := startWithIssuer(t, issuer)
	victim := s.account(t, "bob@example.com")
	b := s.browse()
	var claim signInAnswer
	back := provider.SignIn(t, b.beginAt(t, generic), "bob")
	if err := b.finishAt(t, generic, back, nil).Into(&claim); err != nil || claim.Token == "" {
		t.Fatalf("got %+v, %v, want a token that is no sign-in", claim, err)
	}
	body := m{"provider": generic, "providerToken": claim.Token, "company": "Engines"}
	wantRefusal(t, "an unverified address", b, b.ask(t, http.MethodPost, "/auth/register", body), http.StatusBadRequest)

	back = provider.SignIn(t, victim.beginAt(t, generic), "bob")
	if got := victim.finishAt(t, generic, back, nil); got.Status != http.StatusForbidden {
		t.Errorf("link an identity with an unverified address: got %v, want 403", got)
	}
	var list []any
	victim.want(t, http.StatusOK, &list, http.MethodGet, "/user/identities", nil)
	if len(list) != 0 {
		t.Errorf("got the identities %v, want none", list)
	}
}

// TestAccounts_OpenIDConnectLink checks that an identity can be linked to an account with a live
// session, but not with the state of another person's session.
func TestAccounts_OpenIDConnectLink(t *testing.T) {
	t.Parallel()
	provider, issuer := startIssuer(t)
	s := startWithIssuer(t, issuer)
	ada, eve := s.account(t, "ada@example.com"), s.account(t, "eve@example.com")
	back := provider.SignIn(t, eve.beginAt(t, generic), "ada")
	if got := eve.finishAt(t, generic, back, nil); got.Status != http.StatusForbidden {
		t.Errorf("link an identity with somebody else's address: got %v, want 403", got)
	}
	back = provider.SignIn(t, eve.beginAt(t, generic), "ada")
	ada.cookies["oauth_state"] = eve.cookies["oauth_state"]
	if got := ada.finishAt(t, generic, back, nil); got.Status != http.StatusBadRequest {
		t.Errorf("finish the link that another person began: got %v, want 400", got)
	}
	back = provider.SignIn(t, ada.beginAt(t, generic), "ada")
	var linked signInAnswer
	if err := ada.on(1).finishAt(t, generic, back, nil).Into(&linked); err != nil || !linked.Linked {
		t.Fatalf("got %+v, %v, want the identity linked", linked, err)
	}
	s.letter(t, "ada@example.com", "A login method was added", 1)
	b := s.browse()
	back = provider.SignIn(t, b.beginAt(t, generic), "ada")
	if a := b.finishAt(t, generic, back, nil); a.Status != http.StatusCreated || b.on(1).self(t).ID != ada.id {
		t.Errorf("sign-in with the linked identity: got %v, want the session of the account", a)
	}
}

func TestAccounts_GitHub(t *testing.T) {
	t.Parallel()
	sim := github.New(github.Options{})
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	t.Cleanup(sim.Close)
	app := github.App{
		ClientID: "crier", Secret: "client-secret-3f9a", Name: "Crier", Callbacks: []github.Callback{{URL: callbackURL}},
	}
	if err := sim.AddApp(app); err != nil {
		t.Fatal(err)
	}
	sim.SetConsent(github.Consent{Answer: github.AnswerAccept})
	s := startInstance(t, map[string]string{
		"GITHUB_URL": server.URL, "GITHUB_CLIENT_ID": app.ClientID, "GITHUB_CLIENT_SECRET": app.Secret,
	})
	enter := func(b *browser, user github.User) (out signInAnswer) {
		if err := sim.SetUser(user); err != nil {
			t.Fatal(err)
		}
		if err := sim.SignIn(user.ID); err != nil {
			t.Fatal(err)
		}
		page, err := call.Do(t.Context(), fresh(), http.MethodGet, b.beginAt(t, gitHub), nil)
		if err != nil {
			t.Fatal(err)
		}
		back := queryOf(t, page.Header.Get("Location"))
		if err := b.on(1).finishAt(t, gitHub, back, nil).Into(&out); err != nil {
			t.Fatalf("sign-in of %s: %v", user.Login, err)
		}
		return out
	}
	octocat := github.User{ID: 583231, Login: "octocat", Name: "Octo", Emails: []github.Email{
		{Email: "octocat@example.com", Primary: true, Verified: true, Visibility: github.VisibilityPrivate},
	}}
	b := s.browse()
	claim := enter(b, octocat)
	b.want(t, http.StatusCreated, nil, http.MethodPost, "/auth/register",
		m{"provider": gitHub, "providerToken": claim.Token, "company": "Octo"})
	if got := b.on(1).self(t); got.Email != "octocat@example.com" || !got.Verified {
		t.Errorf("got %+v, want the verified person", got)
	}
	octocat.Login, octocat.Emails[0].Email = "renamed", "another@example.com"
	if got := enter(s.browse(), octocat); !got.Login {
		t.Errorf("got %+v after the person's name and address changed, want a session: the id identifies", got)
	}
	fake := github.User{ID: 7, Login: "fake", IgnoreEmailCheck: true, Emails: []github.Email{
		{Email: "octocat@example.com", Primary: true, Visibility: github.VisibilityPrivate},
	}}
	stranger := s.browse()
	claim = enter(stranger, fake)
	a := stranger.ask(t, http.MethodPost, "/auth/register", m{"provider": gitHub, "providerToken": claim.Token, "company": "Fake"})
	wantRefusal(t, "an unverified address", stranger, a, http.StatusBadRequest)
}
