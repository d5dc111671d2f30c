package accounts

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"crier/platform/fault"
	"crier/tenancy"
	"crier/tenancy/signin"
)

// providers is a Providers that accepts the keys of its map as codes and returns their identities.
type providers struct {
	mu         sync.Mutex
	begun      int
	identities map[string]signin.Identity
	got        signin.Callback
}

func (f *providers) Has(p signin.Provider) bool {
	return p == signin.ProviderGitHub || p == signin.ProviderGeneric
}

func (f *providers) Begin(_ context.Context, p signin.Provider, redirectURI string) (signin.Start, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun++
	n := fmt.Sprintf("%s-%043d", p, f.begun)
	return signin.Start{URL: "https://idp.example/?to=" + redirectURI, State: "state-" + n, Verifier: "verifier-" + n, Nonce: "nonce-" + n}, nil
}

func (f *providers) Finish(_ context.Context, p signin.Provider, c signin.Callback) (signin.Identity, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = c
	i, ok := f.identities[c.Code]
	if !ok {
		return i, fault.New(fault.Invalid, "fake", "The provider refused the sign-in.")
	}
	i.Provider = p
	return i, nil
}

func (w *rig) withProviders() *providers {
	f := &providers{identities: map[string]signin.Identity{}}
	for _, name := range []string{"ada", "eve"} {
		f.identities[name] = signin.Identity{
			Issuer: "https://idp.example", Subject: name, Email: name + "@example.com", EmailVerified: true, Name: name,
		}
	}
	f.identities["unnamed"] = signin.Identity{Issuer: "https://idp.example", Subject: "n", Name: "N"}
	f.identities["unverified"] = signin.Identity{
		Issuer: "https://idp.example", Subject: "u", Unverified: "eve@example.com", Name: "U",
	}
	w.deps.Providers = f
	return f
}

// callback begins a sign-in and returns what the browser brings back from the provider.
func (w *rig) callback(p tenancy.Principal, code string) tenancy.Callback {
	w.t.Helper()
	_, state, err := w.BeginSignIn(w.t.Context(), "GITHUB", "https://crier.example/back", p)
	must(w.t, err)
	return tenancy.Callback{Code: code, State: state, Cookie: state, From: from("")}
}

var nobody tenancy.Principal

func TestProvider_StateIsOfTheBrowserAndOnce(t *testing.T) {
	t.Parallel()
	var f *providers
	w := openAtOnce(t, func(w *rig) { f = w.withProviders() })
	finish := func(provider string, cb tenancy.Callback) error {
		_, err := w.FinishSignIn(t.Context(), provider, cb, nobody)
		return err
	}
	for name, change := range map[string]func(cb *tenancy.Callback) string{
		"another cookie":       func(cb *tenancy.Callback) string { cb.Cookie = "x"; return "GITHUB" },
		"no cookie":            func(cb *tenancy.Callback) string { cb.Cookie = ""; return "GITHUB" },
		"no state":             func(cb *tenancy.Callback) string { cb.Cookie, cb.State = "", ""; return "GITHUB" },
		"a state of nobody":    func(cb *tenancy.Callback) string { cb.Cookie, cb.State = "x", "x"; return "GITHUB" },
		"another provider":     func(*tenancy.Callback) string { return "GENERIC" },
		"another redirect URI": func(cb *tenancy.Callback) string { cb.RedirectURI = "https://evil.example"; return "GITHUB" },
	} {
		cb := w.callback(nobody, "ada")
		wantFault(t, name, finish(change(&cb), cb), fault.Invalid)
	}
	wantFault(t, "an unknown provider", finish("APPLE", w.callback(nobody, "ada")), fault.NotFound)
	_, _, err := w.BeginSignIn(t.Context(), "APPLE", "", nobody)
	wantFault(t, "begin with an unknown provider", err, fault.NotFound)
	late := w.callback(nobody, "ada")
	w.advance(tenancy.SignInStateLife)
	wantFault(t, "after ten minutes", finish("GITHUB", late), fault.Invalid)
	refused := w.callback(nobody, "no code")
	wantFault(t, "a code that the provider refuses", finish("GITHUB", refused), fault.Invalid)
	refused.Code = "ada"
	wantFault(t, "the state of a refused code", finish("GITHUB", refused), fault.Invalid)
	if f.got.Verifier == "" || f.got.Nonce == "" || f.got.RedirectURI != "https://crier.example/back" {
		t.Errorf("got the callback %+v, want verifier, nonce and redirect URI of the beginning", f.got)
	}
	cb := w.callback(nobody, "ada")
	got := kinds(together(8, func(int) error { return finish("GITHUB", cb) }))
	if got[""] != 1 || got[fault.Invalid] != 7 {
		t.Errorf("got %v by one state in parallel, want one", got)
	}
	w.wantCount(1, "identity_claim")
	off := openAtOnce(t, nil)
	_, _, err = off.BeginSignIn(t.Context(), "GITHUB", "", nobody)
	wantFault(t, "without providers", err, fault.NotFound)
}

func TestProvider_ClaimRegistersOnce(t *testing.T) {
	t.Parallel()
	w := open(t, func(w *rig) { w.withProviders() })
	out, err := w.FinishSignIn(t.Context(), "GITHUB", w.callback(nobody, "ada"), nobody)
	if err != nil || out.Claim == "" || out.Session != "" || out.Linked {
		t.Fatalf("got %+v, %v, want a claim only", out, err)
	}
	r := tenancy.Registration{Provider: out.Claim, Organization: "Engines", Email: "eve@example.com", From: from("")}
	in, err := w.Register(t.Context(), r)
	if err != nil || in.Session == "" || in.Org.IsZero() {
		t.Fatalf("got %+v, %v, want a session: the address is verified", in, err)
	}
	w.wantCount(1, "person where email = 'ada@example.com' and verified and name = 'ada' and password_hash = ''")
	_, err = w.Register(t.Context(), r)
	wantFault(t, "the claim again", err, fault.Invalid)
	w.wantCount(1, "person")
	out, err = w.FinishSignIn(t.Context(), "GITHUB", w.callback(nobody, "ada"), nobody)
	if err != nil || out.Session == "" || out.Claim != "" {
		t.Errorf("the next sign-in: got %+v, %v, want a session", out, err)
	}
	p := w.principal(out.Session, "")
	if all, err := w.Identities(t.Context(), p); err != nil || len(all) != 1 || all[0].Provider != "GITHUB" {
		t.Errorf("got %+v, %v, want the identity", all, err)
	}
	out, err = w.FinishSignIn(t.Context(), "GITHUB", w.callback(nobody, "eve"), nobody)
	must(t, err)
	w.advance(tenancy.SignInStateLife)
	r.Provider = out.Claim
	_, err = w.Register(t.Context(), r)
	wantFault(t, "a claim after ten minutes", err, fault.Invalid)
	for _, code := range []string{"unnamed", "unverified"} {
		out, err = w.FinishSignIn(t.Context(), "GITHUB", w.callback(nobody, code), nobody)
		if err != nil || out.Claim == "" {
			t.Fatalf("got %+v, %v, want a claim", out, err)
		}
		r.Provider = out.Claim
		_, err = w.Register(t.Context(), r)
		wantFault(t, "a claim without a verified address", err, fault.Invalid)
	}
	w.wantCount(1, "person")
}

// TestProvider_UnverifiedAddressIsNamed checks that nobody gets, joins or links an account with an
// address that the provider does not call verified, and that the refusal says what is missing.
func TestProvider_UnverifiedAddressIsNamed(t *testing.T) {
	t.Parallel()
	w := open(t, func(w *rig) { w.withProviders() })
	for provider, word := range map[string]string{"GENERIC": "OIDC_TRUST_EMAIL=true", "GITHUB": "register with the address"} {
		_, state, err := w.BeginSignIn(t.Context(), provider, "https://crier.example/back", nobody)
		must(t, err)
		cb := tenancy.Callback{Code: "unverified", State: state, Cookie: state, From: from("")}
		out, err := w.FinishSignIn(t.Context(), provider, cb, nobody)
		must(t, err)
		_, err = w.Register(t.Context(), tenancy.Registration{Provider: out.Claim, Organization: "Engines", From: from("")})
		wantFault(t, provider, err, fault.Invalid)
		for _, want := range []string{"returned the address eve@example.com but does not say that it is verified", word} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got the error %v, want %q", provider, err, want)
			}
		}
		if names := strings.Contains(err.Error(), "OIDC_TRUST_EMAIL"); names != (provider == "GENERIC") {
			t.Errorf("%s: got the error %v, want the setting for the generic provider only", provider, err)
		}
	}
	w.wantCount(0, "person")
	eve := w.owner("eve@example.com")
	out, err := w.FinishSignIn(t.Context(), "GITHUB", w.callback(nobody, "unverified"), nobody)
	if err != nil || out.Session != "" || out.Linked {
		t.Errorf("the address of an account: got %+v, %v, want no session", out, err)
	}
	_, err = w.FinishSignIn(t.Context(), "GITHUB", w.callback(eve, "unverified"), eve)
	wantFault(t, "link an address that is not verified", err, fault.Forbidden)
	if !strings.Contains(err.Error(), "does not say that it is verified") {
		t.Errorf("got the error %v, want it to say what is missing", err)
	}
	w.wantCount(0, "identity")
}

func TestProvider_LinksOnlyWithSessionAndSameAddress(t *testing.T) {
	t.Parallel()
	w := open(t, func(w *rig) { w.withProviders() })
	p, eve := w.owner("ada@example.com"), w.owner("eve@example.com")
	_, err := w.FinishSignIn(t.Context(), "GITHUB", w.callback(nobody, "ada"), nobody)
	wantFault(t, "a known address without a session", err, fault.Conflict)
	for name, c := range map[string]struct {
		code     string
		finisher tenancy.Principal
		want     fault.Kind
	}{
		"another person's session": {code: "ada", finisher: eve, want: fault.Invalid},
		"without a session":        {code: "ada", finisher: nobody, want: fault.Invalid},
		"another address":          {code: "eve", finisher: p, want: fault.Forbidden},
		"no verified address":      {code: "unverified", finisher: p, want: fault.Forbidden},
	} {
		_, err := w.FinishSignIn(t.Context(), "GITHUB", w.callback(p, c.code), c.finisher)
		wantFault(t, name, err, c.want)
	}
	w.exec("update person set verified = false")
	_, err = w.FinishSignIn(t.Context(), "GITHUB", w.callback(p, "ada"), p)
	wantFault(t, "not verified here", err, fault.Forbidden)
	w.exec("update person set verified = true")
	w.wantCount(0, "identity")
	out, err := w.FinishSignIn(t.Context(), "GITHUB", w.callback(p, "ada"), p)
	if err != nil || !out.Linked || out.Session != "" {
		t.Fatalf("got %+v, %v, want to be linked", out, err)
	}
	w.wantAudit(p.Org, tenancy.ActionIdentityLinked, 1)
	if out, err = w.FinishSignIn(t.Context(), "GITHUB", w.callback(p, "ada"), p); err != nil || !out.Linked {
		t.Errorf("again: got %+v, %v, want to be linked", out, err)
	}
	_, err = w.FinishSignIn(t.Context(), "GITHUB", w.callback(eve, "ada"), eve)
	wantFault(t, "another person's identity", err, fault.Conflict)
	w.wantCount(1, "identity")
	w.enroll(p)
	out, err = w.FinishSignIn(t.Context(), "GITHUB", w.callback(nobody, "ada"), nobody)
	if err != nil || out.Step != tenancy.StepMFA || out.Session != "" {
		t.Errorf("sign in: got %+v, %v, want the second factor still", out, err)
	}
	if m := w.box.subjects("ada@example.com"); m != "" {
		t.Errorf("got %s before the mails were delivered", m)
	}
}

func TestProvider_RegistrationModeHolds(t *testing.T) {
	t.Parallel()
	w := open(t, func(w *rig) { w.withProviders(); w.cfg.Registration.Registration = "invite" })
	out, err := w.FinishSignIn(t.Context(), "GITHUB", w.callback(nobody, "ada"), nobody)
	must(t, err)
	_, err = w.Register(t.Context(), tenancy.Registration{Provider: out.Claim, Organization: "Engines", From: from("")})
	wantFault(t, "without an invitation", err, fault.Invalid)
	w.wantCount(0, "person")
	p := w.owner("root@example.com")
	_, link := w.invite(p, "ada@example.com", tenancy.RoleUser)
	in, err := w.Register(t.Context(), tenancy.Registration{Provider: out.Claim, Invitation: link, From: from("")})
	if err != nil || in.Org != p.Org {
		t.Errorf("with an invitation: got %+v, %v, want the organization %s", in, err, p.Org)
	}
}
