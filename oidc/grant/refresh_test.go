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

func TestRefresh_Rotates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.tokens(r.owner, nil)
	r.advance(time.Hour)
	r.wantToken("an expired token", first.Access, fault.Unauthenticated)
	second := r.refresh(first.Refresh)
	r.wantToken("the new token", second.Access, "")
	third := r.refresh(second.Refresh)
	r.wantToken("the newest token", third.Access, "")
	r.wantToken("the token before", second.Access, "")
}

// A client that lost the response sends the old token again. The tokens that it did not receive are
// voided.
func TestRefresh_RepeatVoidsTheUnusedSuccessor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.tokens(r.owner, nil)
	lost := r.refresh(first.Refresh)
	got := r.refresh(first.Refresh)
	r.wantToken("the token that was lost", lost.Access, fault.Unauthenticated)
	r.wantToken("the token that was received", got.Access, "")
	r.wantToken("the first token", first.Access, "")
	next := r.refresh(got.Refresh)
	r.wantToken("the token after it", next.Access, "")
}

func TestRefresh_ReuseRevokesTheFamily(t *testing.T) {
	t.Parallel()
	for name, reuse := range map[string]func(r *rig, first, second oidc.Tokens) string{
		"a token whose successor was used": func(r *rig, first, second oidc.Tokens) string {
			r.refresh(second.Refresh)
			return first.Refresh
		},
		"a voided token": func(r *rig, first, second oidc.Tokens) string {
			r.refresh(first.Refresh)
			return second.Refresh
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			other := r.tokens(r.owner, nil)
			first := r.tokens(r.owner, nil)
			second := r.refresh(first.Refresh)
			_, err := r.Grants.Refresh(t.Context(), r.client, reuse(r, first, second))
			r.wantCode("the reuse", err, oidc.InvalidGrant)
			r.wantToken("the first token", first.Access, fault.Unauthenticated)
			_, err = r.Grants.Refresh(t.Context(), r.client, second.Refresh)
			r.wantCode("the family", err, oidc.InvalidGrant)
			r.wantToken("another family of the grant", other.Access, "")
			r.refresh(other.Refresh)
		})
	}
}

func TestRefresh_Refusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.tokens(r.owner, nil)
	other := r.register(oidc.Metadata{Name: "Other", Auth: "none", RedirectURIs: []string{redirectURI}}).Client
	for name, c := range map[string]struct {
		client oidc.Client
		token  string
	}{
		"another client's token": {client: other, token: got.Refresh},
		"an access token":        {client: r.client, token: got.Access},
		"an unknown token":       {client: r.client, token: oidc.RefreshPrefix + "x"},
	} {
		_, err := r.Grants.Refresh(t.Context(), c.client, c.token)
		r.wantCode(name, err, oidc.InvalidGrant)
	}
	r.refresh(got.Refresh)
}

func TestRefresh_EndsWhenIdle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.tokens(r.owner, nil)
	r.advance(oidc.RefreshIdle - time.Minute)
	second := r.refresh(first.Refresh)
	r.advance(oidc.RefreshIdle - time.Minute)
	third := r.refresh(second.Refresh)
	r.advance(oidc.RefreshIdle)
	_, err := r.Grants.Refresh(t.Context(), r.client, third.Refresh)
	r.wantCode("a token that was idle", err, oidc.InvalidGrant)
}

func TestRefresh_NoTokenOutlivesItsGrant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	end := time.Now().Add(30 * time.Minute)
	got := r.tokens(r.owner, func(c *oidc.Consent) { c.Limits.EndsAt = &end })
	if got.ExpiresIn > 31*time.Minute {
		t.Errorf("the token works for %s, want about 30 min", got.ExpiresIn)
	}
	r.advance(32 * time.Minute)
	r.wantToken("a token after the end", got.Access, fault.Unauthenticated)
	_, err := r.Grants.Refresh(t.Context(), r.client, got.Refresh)
	r.wantCode("refreshing after the end", err, oidc.InvalidGrant)
}

func TestRefresh_ConcurrentCallsLeaveOneLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.tokens(r.owner, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := r.Grants.Refresh(t.Context(), r.client, first.Refresh); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := r.count(`select count(*) from oauth_token where parent is not null and not voided`); n != 2 {
		t.Errorf("%d tokens work, want an access token and a refresh token", n)
	}
}

func TestRefresh_PersonWhoLeftGetsNoTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	member := tenant.Join(t, r.db, r.owner.Org, tenancy.RoleUser)
	got := r.tokens(member, nil)
	tenant.Leave(t, r.db, member)
	_, err := r.Grants.Refresh(t.Context(), r.client, got.Refresh)
	r.wantCode("refreshing", err, oidc.InvalidGrant)
}

func TestRevokeToken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := r.register(oidc.Metadata{Name: "Other", Auth: "none", RedirectURIs: []string{redirectURI}}).Client
	got, kept := r.tokens(r.owner, nil), r.tokens(r.owner, nil)
	for _, c := range []struct {
		client oidc.Client
		token  string
	}{{other, got.Access}, {other, got.Refresh}, {r.client, "unknown"}} {
		must(t, r.Grants.RevokeToken(t.Context(), c.client, c.token))
	}
	r.wantToken("a token that others tried to revoke", got.Access, "")
	must(t, r.Grants.RevokeToken(t.Context(), r.client, got.Access))
	r.wantToken("a revoked access token", got.Access, fault.Unauthenticated)
	next := r.refresh(got.Refresh)
	must(t, r.Grants.RevokeToken(t.Context(), r.client, next.Refresh))
	r.wantToken("a token of a revoked family", next.Access, fault.Unauthenticated)
	_, err := r.Grants.Refresh(t.Context(), r.client, next.Refresh)
	r.wantCode("a revoked refresh token", err, oidc.InvalidGrant)
	r.wantToken("another family", kept.Access, "")
}
