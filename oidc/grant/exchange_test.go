package grant_test

import (
	"sync"
	"testing"
	"time"

	"crier/oidc"
	"crier/platform/fault"
	"crier/tenancy"
	"crier/tests/tenant"
)

func TestExchange_GivesTokensOfThePerson(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.tokens(r.owner, nil)
	if got.ExpiresIn != time.Hour || got.Scopes.String() != "mcp:read mcp:write offline_access" || got.Org != r.owner.Org || got.Refresh == "" {
		t.Errorf("got %+v", got)
	}
	p := r.wantToken("the token", got.Access, "")
	if p.Org != r.owner.Org || p.Person != r.owner.Person || p.Role != tenancy.RoleSuperAdmin || p.Via != tenancy.ViaAgent ||
		p.Agent.ID != r.client.ID || p.Agent.Grant.IsZero() || p.Agent.Name != "Claude" || !p.Agent.Write || p.Agent.Limits != nil {
		t.Errorf("got the principal %+v", p)
	}
}

func TestExchange_Refusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := r.register(oidc.Metadata{Name: "Other", Auth: "none", RedirectURIs: []string{redirectURI}}).Client
	code := r.approve(r.owner, nil)
	for name, c := range map[string]struct {
		client oidc.Client
		change func(q *oidc.CodeRequest)
	}{
		"an unknown code":       {client: r.client, change: func(q *oidc.CodeRequest) { q.Code += "x" }},
		"another client's code": {client: other},
		"a wrong verifier":      {client: r.client, change: func(q *oidc.CodeRequest) { q.Verifier = "x" + verifier[1:] }},
		"no verifier":           {client: r.client, change: func(q *oidc.CodeRequest) { q.Verifier = "" }},
		"a wrong redirect URI":  {client: r.client, change: func(q *oidc.CodeRequest) { q.RedirectURI += "/" }},
		"no redirect URI":       {client: r.client, change: func(q *oidc.CodeRequest) { q.RedirectURI = "" }},
	} {
		q := request(code)
		if c.change != nil {
			c.change(&q)
		}
		_, err := r.Grants.Exchange(t.Context(), c.client, q)
		r.wantCode(name, err, oidc.InvalidGrant)
	}
	if _, err := r.Grants.Exchange(t.Context(), r.client, request(code)); err != nil {
		t.Errorf("the right request after wrong ones: %v", err)
	}
}

func TestExchange_CodeExpires(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	code := r.approve(r.owner, nil)
	r.advance(oidc.CodeLife)
	_, err := r.Grants.Exchange(t.Context(), r.client, request(code))
	r.wantCode("an expired code", err, oidc.InvalidGrant)
}

// A static application may omit the redirect URI and the challenge. A verifier without a challenge
// is refused, because somebody may have removed the challenge.
func TestExchange_WithoutRedirectURIAndChallenge(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	app, _, err := r.Clients.CreateApp(t.Context(), r.owner, oidc.App{
		Client: oidc.Client{Name: "CLI", RedirectURIs: []string{redirectURI}},
	})
	must(t, err)
	r.client = app.Client
	bare := func(c *oidc.Consent) { c.Request.RedirectSent, c.Request.Challenge = false, "" }
	code := r.approve(r.owner, bare)
	_, err = r.Grants.Exchange(t.Context(), r.client, oidc.CodeRequest{Code: code, Verifier: verifier})
	r.wantCode("a verifier without a challenge", err, oidc.InvalidGrant)
	_, err = r.Grants.Exchange(t.Context(), r.client, oidc.CodeRequest{Code: code, RedirectURI: "https://evil.example/"})
	r.wantCode("another redirect URI", err, oidc.InvalidGrant)
	if _, err := r.Grants.Exchange(t.Context(), r.client, oidc.CodeRequest{Code: code}); err != nil {
		t.Errorf("neither: %v", err)
	}
	if _, err := r.Grants.Exchange(t.Context(), r.client, oidc.CodeRequest{Code: r.approve(r.owner, bare), RedirectURI: redirectURI}); err != nil {
		t.Errorf("the stored redirect URI: %v", err)
	}
}

func TestExchange_ReplayRevokesTheTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	kept := r.tokens(r.owner, nil)
	code := r.approve(r.owner, nil)
	got, err := r.Grants.Exchange(t.Context(), r.client, request(code))
	must(t, err)
	other := r.register(oidc.Metadata{Name: "Other", Auth: "none", RedirectURIs: []string{redirectURI}}).Client
	_, err = r.Grants.Exchange(t.Context(), other, request(code))
	r.wantCode("a replay by another client", err, oidc.InvalidGrant)
	r.wantToken("after a replay by another client", got.Access, "")
	r.advance(10 * time.Minute)
	_, err = r.Grants.Exchange(t.Context(), r.client, request(code))
	r.wantCode("a replay", err, oidc.InvalidGrant)
	r.wantToken("after a replay", got.Access, fault.Unauthenticated)
	_, err = r.Grants.Refresh(t.Context(), r.client, got.Refresh)
	r.wantCode("refreshing after a replay", err, oidc.InvalidGrant)
	r.wantToken("the tokens of another code", kept.Access, "")
}

func TestExchange_ConcurrentCallsSucceedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	code := r.approve(r.owner, nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	succeeded := 0
	for range 8 {
		wg.Go(func() {
			_, err := r.Grants.Exchange(t.Context(), r.client, request(code))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				succeeded++
				return
			}
			r.wantCode("a later call", err, oidc.InvalidGrant)
		})
	}
	wg.Wait()
	if succeeded != 1 {
		t.Errorf("%d calls succeeded, want 1", succeeded)
	}
}

func TestExchange_PersonWhoLeftGetsNoTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	member := tenant.Join(t, r.db, r.owner.Org, tenancy.RoleUser)
	code := r.approve(member, nil)
	tenant.Leave(t, r.db, member)
	_, err := r.Grants.Exchange(t.Context(), r.client, request(code))
	r.wantCode("the code of a person who left", err, oidc.InvalidGrant)
}
