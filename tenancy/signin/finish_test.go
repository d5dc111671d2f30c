package signin

import (
	"net/url"
	"testing"

	"crier/platform/fault"
)

func TestBegin_URLHasTheParameters(t *testing.T) {
	t.Parallel()
	s := startProvider(t)
	p := openProviders(t, generic(s.server), finishLimit)
	first, second := begin(t, p, ProviderGeneric), begin(t, p, ProviderGeneric)
	if first.State == second.State || first.Nonce == second.Nonce || first.Verifier == second.Verifier {
		t.Errorf("got the same values in two sign-ins, want new ones")
	}
	u, err := url.Parse(first.URL)
	if err != nil {
		t.Fatalf("parse %q: %v", first.URL, err)
	}
	want := map[string]string{
		"client_id": clientID, "response_type": "code", "redirect_uri": redirectURI, "scope": "openid email profile",
		"state": first.State, "nonce": first.Nonce, "code_challenge_method": "S256",
	}
	for name, value := range want {
		if got := u.Query().Get(name); got != value {
			t.Errorf("got %s=%q, want %q", name, got, value)
		}
	}
	if got := u.Query().Get("code_challenge"); len(got) != 43 || got == first.Verifier {
		t.Errorf("got the challenge %q, want the hash of the verifier", got)
	}
}

func TestFinish_VerifiedAddress(t *testing.T) {
	t.Parallel()
	s := startProvider(t)
	p := openProviders(t, generic(s.server), finishLimit)
	start := begin(t, p, ProviderGeneric)
	cb := callback(start, s.signIn(t, start, "ada").Get("code"))
	cb.Issuer = s.url
	got, err := p.Finish(t.Context(), ProviderGeneric, cb)
	want := Identity{
		Provider: ProviderGeneric, Issuer: s.url, Subject: "ada", Email: "ada@example.com", EmailVerified: true,
		Name: "Ada Byron",
	}
	if err != nil || got != want {
		t.Errorf("got %+v and the error %v, want %+v", got, err, want)
	}
}

func TestFinish_UnverifiedAddressIsOnlyForMessages(t *testing.T) {
	t.Parallel()
	s := startProvider(t)
	p := openProviders(t, generic(s.server), finishLimit)
	start := begin(t, p, ProviderGeneric)
	got, err := p.Finish(t.Context(), ProviderGeneric, callback(start, s.signIn(t, start, "bob").Get("code")))
	want := Identity{
		Provider: ProviderGeneric, Issuer: s.url, Subject: "bob", Unverified: "bob@example.com", Name: "Bob",
	}
	if err != nil || got != want {
		t.Errorf("got %+v and the error %v, want %+v", got, err, want)
	}
}

func TestFinish_ReplayedCodeIsRefused(t *testing.T) {
	t.Parallel()
	s := startProvider(t)
	p := openProviders(t, generic(s.server), finishLimit)
	start := begin(t, p, ProviderGeneric)
	cb := callback(start, s.signIn(t, start, "ada").Get("code"))
	if _, err := p.Finish(t.Context(), ProviderGeneric, cb); err != nil {
		t.Fatalf("first use of the code: %v", err)
	}
	_, err := p.Finish(t.Context(), ProviderGeneric, cb)
	wantFault(t, err, fault.Invalid, "The sign-in with SSO was refused: start again.", cb.Code, cb.Verifier)
	if got := s.requests("token"); got != 2 {
		t.Errorf("got %d token requests for two Finish, want 2", got)
	}
}

func TestFinish_MismatchIsRefused(t *testing.T) {
	t.Parallel()
	s := startProvider(t)
	p := openProviders(t, generic(s.server), finishLimit)
	for name, change := range map[string]func(*Callback){
		"nonce of another sign-in":    func(cb *Callback) { cb.Nonce = "another" },
		"no nonce":                    func(cb *Callback) { cb.Nonce = "" },
		"verifier of another sign-in": func(cb *Callback) { cb.Verifier = "0123456789012345678901234567890123456789012" },
		"no verifier":                 func(cb *Callback) { cb.Verifier = "" },
		"another redirect address":    func(cb *Callback) { cb.RedirectURI = "https://app.example/other" },
		"unknown code":                func(cb *Callback) { cb.Code = "invented" },
		"no code":                     func(cb *Callback) { cb.Code = "" },
		"another issuer":              func(cb *Callback) { cb.Issuer = "https://attacker.example" },
		"issuer with a slash":         func(cb *Callback) { cb.Issuer += s.url + "/" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := begin(t, p, ProviderGeneric)
			cb := callback(start, s.signIn(t, start, "ada").Get("code"))
			code := cb.Code
			change(&cb)
			_, err := p.Finish(t.Context(), ProviderGeneric, cb)
			wantFault(t, err, fault.Invalid, "refused", code, start.Verifier, start.Nonce)
		})
	}
}

// TestFinish_CodeOfAnotherProviderIsRefused begins at one provider and finishes with the code of
// another one, with and without its issuer.
func TestFinish_CodeOfAnotherProviderIsRefused(t *testing.T) {
	t.Parallel()
	honest, other := startProvider(t), startProvider(t)
	p := openProviders(t, generic(honest.server), finishLimit)
	q := openProviders(t, generic(other.server), finishLimit)
	for _, iss := range []string{"", other.url} {
		start := begin(t, p, ProviderGeneric)
		foreign := begin(t, q, ProviderGeneric)
		cb := callback(start, other.signIn(t, foreign, "ada").Get("code"))
		cb.Issuer = iss
		_, err := p.Finish(t.Context(), ProviderGeneric, cb)
		wantFault(t, err, fault.Invalid, "refused", cb.Code, cb.Verifier)
	}
	if got := honest.requests("token"); got != 1 {
		t.Errorf("got %d token requests, want none for the callback of a known other issuer and 1 without", got)
	}
}

func TestFinish_WrongClientSecretIsASetupFault(t *testing.T) {
	t.Parallel()
	s := startProvider(t)
	cfg := generic(s.server)
	cfg.Secret = "wrong-secret-77"
	p := openProviders(t, cfg, finishLimit)
	start := begin(t, p, ProviderGeneric)
	cb := callback(start, s.signIn(t, start, "ada").Get("code"))
	_, err := p.Finish(t.Context(), ProviderGeneric, cb)
	wantFault(t, err, fault.Unavailable, "not set up correctly", cb.Code, "wrong-secret-77")
}

func TestFinish_RotatedKeyIsFetched(t *testing.T) {
	t.Parallel()
	s := startProvider(t)
	p := openProviders(t, generic(s.server), finishLimit)
	// The third key has the same id as the second.
	for _, id := range []string{"first", "second", "second"} {
		s.Rotate(t, id)
		start := begin(t, p, ProviderGeneric)
		cb := callback(start, s.signIn(t, start, "ada").Get("code"))
		if _, err := p.Finish(t.Context(), ProviderGeneric, cb); err != nil {
			t.Fatalf("Finish with the key %s: %v", id, err)
		}
	}
}

func TestProviders_OnlyConfiguredOnes(t *testing.T) {
	t.Parallel()
	p := openProviders(t, Config{GitHubID: "a", GitHubSecret: "b", GoogleID: "c", GoogleSecret: "d"}, finishLimit)
	want := []Name{{Provider: ProviderGitHub, Label: "GitHub"}, {Provider: ProviderGoogle, Label: "Google"}}
	if got := p.Names(); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got the names %v, want %v", got, want)
	}
	if p.Has(ProviderGeneric) || p.Has("APPLE") || !p.Has(ProviderGitHub) || !p.Has(ProviderGoogle) {
		t.Errorf("Has does not agree with the names %v", p.Names())
	}
	_, err := p.Begin(t.Context(), "APPLE", redirectURI)
	wantFault(t, err, fault.NotFound, "not available")
	_, err = p.Finish(t.Context(), ProviderGeneric, Callback{Code: "x"})
	wantFault(t, err, fault.NotFound, "not available")
}
