package signin

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/tests/sim/github"
)

// startGitHub returns a simulated GitHub with one signed-in person, and the server in front of it.
func startGitHub(t *testing.T, user github.User) (*github.Platform, *server) {
	t.Helper()
	sim, s := github.New(github.Options{}), newServer(t)
	s.mux.Handle("/", sim)
	t.Cleanup(sim.Close)
	app := github.App{
		ClientID: clientID, Secret: clientSecret, Name: "Crier", Callbacks: []github.Callback{{URL: redirectURI}},
	}
	if err := sim.AddApp(app); err != nil {
		t.Fatalf("add the app: %v", err)
	}
	if err := sim.SetUser(user); err != nil {
		t.Fatalf("add the person: %v", err)
	}
	if err := sim.SignIn(user.ID); err != nil {
		t.Fatalf("sign in: %v", err)
	}
	sim.SetConsent(github.Consent{Answer: github.AnswerAccept})
	return sim, s
}

func octocat(verified bool) github.User {
	return github.User{ID: 583231, Login: "octocat", IgnoreEmailCheck: true, Emails: []github.Email{
		{Email: "Octocat@Example.com", Primary: true, Verified: verified, Visibility: github.VisibilityPrivate},
		{Email: "other@example.com", Verified: true},
	}}
}

// authorize opens the sign-in address in a browser and returns the callback.
func authorize(t *testing.T, start Start) Callback {
	t.Helper()
	browser := &http.Client{CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), redirectURI) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	resp, err := browser.Get(start.URL)
	if err != nil {
		t.Fatalf("open the authorization page: %v", err)
	}
	_ = resp.Body.Close()
	location, err := resp.Location()
	if err != nil || location.Query().Get("state") != start.State || location.Query().Get("code") == "" {
		t.Fatalf("got the redirect %v (status %d, error %v), want one with a code and the state", location, resp.StatusCode, err)
	}
	cb := callback(start, location.Query().Get("code"))
	cb.Issuer = location.Query().Get("iss")
	return cb
}

func simulated(t *testing.T, s *server, limit time.Duration) *Providers {
	t.Helper()
	return openProviders(t, Config{GitHubURL: s.url, GitHubID: clientID, GitHubSecret: clientSecret}, limit)
}

func TestSimulatedGitHub_Identity(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verified bool
		withhold []string
		want     string
	}{
		"verified address":   {verified: true, want: "octocat@example.com"},
		"unverified address": {},
		"withheld address":   {verified: true, withhold: []string{"user:email"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim, s := startGitHub(t, octocat(c.verified))
			sim.SetConsent(github.Consent{Answer: github.AnswerAccept, Withhold: c.withhold})
			p := simulated(t, s, finishLimit)
			got, err := p.Finish(t.Context(), ProviderGitHub, authorize(t, begin(t, p, ProviderGitHub)))
			want := Identity{
				Provider: ProviderGitHub, Issuer: s.url, Subject: "583231", Email: c.want, EmailVerified: c.want != "",
				Name: "octocat",
			}
			if err != nil || got != want {
				t.Errorf("got %+v and the error %v, want %+v", got, err, want)
			}
		})
	}
}

func TestSimulatedGitHub_MismatchIsRefused(t *testing.T) {
	t.Parallel()
	_, s := startGitHub(t, octocat(true))
	p := simulated(t, s, finishLimit)
	cb := authorize(t, begin(t, p, ProviderGitHub))
	if _, err := p.Finish(t.Context(), ProviderGitHub, cb); err != nil {
		t.Fatalf("first use of the code: %v", err)
	}
	_, err := p.Finish(t.Context(), ProviderGitHub, cb)
	wantFault(t, err, fault.Invalid, "refused", cb.Code, cb.Verifier)

	cb = authorize(t, begin(t, p, ProviderGitHub))
	cb.Verifier = begin(t, p, ProviderGitHub).Verifier
	_, err = p.Finish(t.Context(), ProviderGitHub, cb)
	wantFault(t, err, fault.Invalid, "refused", cb.Code, cb.Verifier)
}

func TestSimulatedGitHub_Faults(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []github.Endpoint{github.EndpointToken, github.EndpointUser, github.EndpointEmails} {
		for _, f := range []github.Fault{
			{Kind: github.FaultHang}, {Kind: github.FaultDropAfter}, {Kind: github.FaultMalformed},
			{Kind: github.FaultOversized}, {Kind: github.FaultStatus, Status: 502},
			{Kind: github.FaultSecondaryLimit, RetryAfter: time.Minute},
		} {
			t.Run(string(endpoint)+" "+string(f.Kind), func(t *testing.T) {
				t.Parallel()
				sim, s := startGitHub(t, octocat(true))
				p := simulated(t, s, hangLimit)
				cb := authorize(t, begin(t, p, ProviderGitHub))
				f.Endpoint = endpoint
				if endpoint == github.EndpointToken && f.Kind == github.FaultSecondaryLimit {
					f = github.Fault{Endpoint: endpoint, Kind: github.FaultStatus, Status: 429}
				}
				if err := sim.Fail(f); err != nil {
					t.Fatalf("Fail: %v", err)
				}
				_, err := p.Finish(t.Context(), ProviderGitHub, cb)
				wantFault(t, err, fault.Unavailable, "GitHub does not respond correctly", cb.Code, cb.Verifier)
				if got := s.requests("/access_token"); got != 1 {
					t.Errorf("got %d token requests, want 1", got)
				}
			})
		}
	}
}
