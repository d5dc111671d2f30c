package conformance

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"testing"

	"crier/publishing/connector"
)

// OAuth defines how the suite connects an Authorizer's accounts. It replaces Suite.Fields.
type OAuth struct {
	App connector.App
	// RedirectURI is registered with the platform for App.
	RedirectURI string
	// Consent opens the platform's consent page as a browser does, makes the user's decision, and
	// returns the URL to which the platform then redirects the browser. It must not use the
	// connector. Every call that does not deny access must grant access to the same accounts.
	Consent func(t *testing.T, address string, decision Decision) string
	// Revoke revokes all access that the user has granted on the platform.
	Revoke func(t *testing.T)
}

// Decision is a user's decision on the platform's consent page.
type Decision string

// The decisions. Withhold grants access without one of the permissions that the connector needs.
const (
	Allow    Decision = "allow"
	Deny     Decision = "deny"
	Withhold Decision = "withhold"
)

// authorized is the result of a consent, including its secrets.
type authorized struct {
	callback url.Values
	state    string
	code     connector.Code
}

// consent completes the platform's consent page once. The callback in the result holds the
// parameters that the platform sent.
func (s Suite) consent(t *testing.T, r *rig, decision Decision) authorized {
	t.Helper()
	a, ok := r.c.(connector.Authorizer)
	if !ok {
		t.Fatal("the suite declares OAuth, but the connector is not an Authorizer")
	}
	verifier, state := rand.Text()+rand.Text(), rand.Text()
	sum := sha256.Sum256([]byte(verifier))
	address, err := a.AuthorizeURL(connector.Authorization{
		App: s.OAuth.App, RedirectURI: s.OAuth.RedirectURI, State: state,
		Challenge: base64.RawURLEncoding.EncodeToString(sum[:]),
	})
	if err != nil {
		t.Fatalf("AuthorizeURL: %v", err)
	}
	r.secrets = append(r.secrets, s.OAuth.App.Secret, verifier)
	r.noSecret("the authorization URL", address)
	back, err := url.Parse(s.OAuth.Consent(t, address, decision))
	if err != nil {
		t.Fatalf("the platform redirects to an invalid address: %v", err)
	}
	q := back.Query()
	return authorized{callback: q, state: state, code: connector.Code{
		Code: q.Get("code"), Verifier: verifier, RedirectURI: s.OAuth.RedirectURI,
	}}
}

// exchange obtains a new consent and redeems its code.
func (s Suite) exchange(t *testing.T, r *rig) connector.Authorized {
	t.Helper()
	given := s.consent(t, r, Allow)
	got, err := r.c.(connector.Authorizer).Exchange(t.Context(), r.s.Env, s.OAuth.App, given.code)
	if err != nil {
		t.Fatalf("Exchange: %v", err)
	}
	return got
}

// authorize obtains a new consent and connects the first account to which it grants access.
func (s Suite) authorize(t *testing.T, r *rig) connector.Connected {
	t.Helper()
	r.s.App = s.OAuth.App
	got := s.exchange(t, r)
	if got.Connected != nil {
		return *got.Connected
	}
	if len(got.Candidates) == 0 {
		t.Fatal("Exchange returned neither an account nor candidates")
	}
	return s.choose(t, r, got, got.Candidates[0].ID)
}

func (s Suite) choose(t *testing.T, r *rig, got connector.Authorized, candidate string) connector.Connected {
	t.Helper()
	done, err := r.c.(connector.Authorizer).Select(t.Context(), r.s.Env, s.OAuth.App, got.Credential, candidate)
	if err != nil {
		t.Fatalf("Select: %v", err)
	}
	if done.Account.ID != candidate {
		t.Errorf("Select of %q returned the account %q", candidate, done.Account.ID)
	}
	return done
}

// oauth runs the cases for connecting by OAuth, token rotation and revoked access.
func (s Suite) oauth(t *testing.T) {
	if s.OAuth == nil {
		if _, ok := connector.AuthorizerOf(s.New()); ok {
			t.Fatal("the connector is an Authorizer, but the suite has no OAuth")
		}
		t.Skip("declared: accounts are connected with a form")
	}
	t.Run("every candidate can be chosen", s.everyCandidate)
	t.Run("a candidate that is not offered is refused", func(t *testing.T) {
		r := s.unconnected(t)
		got := s.exchange(t, r)
		if got.Connected != nil {
			t.Skip("this platform has no choice")
		}
		_, err := r.c.(connector.Authorizer).Select(t.Context(), r.s.Env, s.OAuth.App, got.Credential, "nothing")
		r.wantRefusal("Select", err, connector.KindContent)
	})
	t.Run("the state comes back, even if consent is denied", func(t *testing.T) {
		for _, decision := range []Decision{Allow, Deny} {
			given := s.consent(t, s.unconnected(t), decision)
			if given.callback.Get("state") != given.state {
				t.Errorf("%s: the state is %q, sent was %q", decision, given.callback.Get("state"), given.state)
			}
			if denied := given.callback.Get("error") != "" && given.callback.Get("code") == ""; denied != (decision == Deny) {
				t.Errorf("%s: the platform returns %v", decision, given.callback)
			}
		}
	})
	t.Run("reduced permissions are reported", func(t *testing.T) {
		r := s.unconnected(t)
		given := s.consent(t, r, Withhold)
		got, err := r.c.(connector.Authorizer).Exchange(t.Context(), r.s.Env, s.OAuth.App, given.code)
		if err != nil || len(got.Missing) == 0 {
			t.Errorf("got %v (%v), want the missing permissions", got.Missing, err)
		}
	})
	t.Run("a code is redeemed once, and only by whoever began", s.codeOnce)
	t.Run("wrong application credentials are an operator error", func(t *testing.T) {
		r := s.unconnected(t)
		given := s.consent(t, r, Allow)
		wrong := connector.App{ClientID: s.OAuth.App.ClientID, Secret: "wrong secret"}
		_, err := r.c.(connector.Authorizer).Exchange(t.Context(), r.s.Env, wrong, given.code)
		r.wantRefusal("Exchange", err, connector.KindOperator)
	})
	t.Run("a platform that is down is transient", func(t *testing.T) {
		for _, fault := range []Fault{RefuseDial, ErrorBefore, RateLimit} {
			r := s.unconnected(t)
			given := s.consent(t, r, Allow)
			r.line.failCalls(fault, maxSteps)
			_, err := r.c.(connector.Authorizer).Exchange(t.Context(), r.s.Env, s.OAuth.App, given.code)
			r.wantRefusal(string(fault), err, connector.KindTransient)
		}
	})
	t.Run("a refresh rotates, and the old refresh token is refused", s.rotation)
	t.Run("revoked access is reauth", func(t *testing.T) {
		if s.Lasting || s.OAuth.Revoke == nil {
			t.Skip("declared: the access lasts or cannot be revoked")
		}
		r := s.connected(t)
		s.OAuth.Revoke(t)
		_, err := r.c.(connector.Refresher).Refresh(t.Context(), r.s)
		r.wantRefusal("Refresh", err, connector.KindReauth)
		*s.shared = sharedAccount{}
	})
}

func (s Suite) everyCandidate(t *testing.T) {
	r := s.unconnected(t)
	first := s.exchange(t, r)
	if first.Connected != nil {
		t.Skip("this platform has no choice")
	}
	if len(first.Candidates) < 2 {
		t.Fatalf("got %d candidates, want at least two", len(first.Candidates))
	}
	for _, c := range first.Candidates {
		got := s.exchange(t, r)
		if c.ID == "" || c.Name == "" {
			t.Errorf("the candidate has no ID or no name: %+v", c)
		}
		done := s.choose(t, r, got, c.ID)
		// the engine repeats the call after a crash
		again := s.choose(t, r, got, c.ID)
		if done.Account.ID != again.Account.ID {
			t.Errorf("a repeated Select returned %q, first %q", again.Account.ID, done.Account.ID)
		}
	}
}

func (s Suite) codeOnce(t *testing.T) {
	r := s.unconnected(t)
	a := r.c.(connector.Authorizer)
	given := s.consent(t, r, Allow)
	stolen := given.code
	stolen.Verifier = rand.Text() + rand.Text()
	_, err := a.Exchange(t.Context(), r.s.Env, s.OAuth.App, stolen)
	r.wantRefusal("Exchange with another verifier", err, connector.KindContent)
	given = s.consent(t, r, Allow)
	if _, err := a.Exchange(t.Context(), r.s.Env, s.OAuth.App, given.code); err != nil {
		t.Fatalf("Exchange: %v", err)
	}
	_, err = a.Exchange(t.Context(), r.s.Env, s.OAuth.App, given.code)
	r.wantRefusal("the second Exchange of a code", err, connector.KindContent)
	_, err = a.Exchange(t.Context(), r.s.Env, s.OAuth.App, connector.Code{Code: "unknown", Verifier: given.code.Verifier})
	r.wantRefusal("Exchange of an unknown code", err, connector.KindContent)
}

func (s Suite) rotation(t *testing.T) {
	if s.Lasting {
		t.Skip("declared: the access of this connector does not expire")
	}
	r := s.connected(t)
	old := *r.s
	r.renewCredential()
	if r.c.Describe().RefreshLead > 0 {
		out, err := r.c.(connector.Refresher).Refresh(t.Context(), r.s)
		if err != nil || !out.ExpiresAt.After(r.s.Clock.Now()) {
			t.Errorf("Refresh returned the expiry %v (%v), want one in the future", out.ExpiresAt, err)
		}
		r.s.Credential = out.Credential
	}
	_, err := r.c.(connector.Refresher).Refresh(t.Context(), &old)
	r.wantRefusal("Refresh with a used refresh token", err, connector.KindReauth)
}

// wantRefusal checks that err is an error of the given kind, with a public message and no secret.
func (r *rig) wantRefusal(what string, err error, want connector.Kind) {
	r.t.Helper()
	if err == nil {
		r.t.Errorf("%s succeeded, want %s", what, want)
		return
	}
	r.judgeError(what, err)
	if got := connector.KindOf(err, false); got != want {
		r.t.Errorf("%s: got %v, want %s", what, err, want)
	}
}
