package grant_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"crier/oidc"
	"crier/platform/fault"
)

// interrupted runs fn with a context that ends after a while, a little later in each round. A
// connection that ends in the middle of a transaction leaves the same state as a killed process:
// all of it or nothing, and a client that does not know which.
func (r *rig) interrupted(round int, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer time.AfterFunc(time.Duration(round)*400*time.Microsecond, cancel).Stop()
	return fn(ctx)
}

const rounds = 20

func TestApprove_InterruptedLeavesOneCode(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for round := range rounds {
		c := r.consent()
		var code string
		err := r.interrupted(round, func(ctx context.Context) (err error) {
			code, err = r.Grants.Approve(ctx, r.owner, c)
			return err
		})
		if err != nil {
			code, err = r.Grants.Approve(t.Context(), r.owner, c)
		}
		if fault.Is(err, fault.Conflict) { // it was stored, and the person starts again
			code, err = r.approve(r.owner, nil), nil
		}
		must(t, err)
		if _, err := r.Grants.Exchange(t.Context(), r.client, request(code)); err != nil {
			t.Errorf("round %d: the person cannot log in: %v", round, err)
		}
	}
	if n := r.count(`select count(*) from oauth_grant`); n != 1 {
		t.Errorf("got %d grants, want one", n)
	}
}

func TestExchange_InterruptedGivesTokensOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for round := range rounds {
		code := r.approve(r.owner, nil)
		exchange := func(ctx context.Context) error {
			_, err := r.Grants.Exchange(ctx, r.client, request(code))
			return err
		}
		err := r.interrupted(round, exchange)
		if err != nil {
			err = exchange(t.Context())
		}
		var refused *oidc.Error
		if err != nil && (!errors.As(err, &refused) || refused.Code != oidc.InvalidGrant) {
			t.Errorf("round %d: got %v, want tokens or invalid_grant", round, err)
		}
		// If the response to an exchange was lost, no tokens of the code work after the second try.
		if n := r.count(`select count(*) from oauth_family`); err == nil && n != 1 || err != nil && n != 0 {
			t.Errorf("round %d: got %d families after %v", round, n, err)
		}
		r.exec(`delete from oauth_family`)
	}
}

func TestRefresh_InterruptedLocksNobodyOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token := r.tokens(r.owner, nil).Refresh
	for round := range rounds {
		var got oidc.Tokens
		err := r.interrupted(round, func(ctx context.Context) (err error) {
			got, err = r.Grants.Refresh(ctx, r.client, token)
			return err
		})
		if err != nil {
			got = r.refresh(token)
		}
		r.wantToken("the new token", got.Access, "")
		token = got.Refresh
	}
	const doubled = `select count(*) from (select parent from oauth_token where not voided and parent is not null
		group by parent having count(*) <> 2) t`
	if n := r.count(doubled); n != 0 {
		t.Errorf("%d refresh tokens have other successors than an access token and a refresh token", n)
	}
}
