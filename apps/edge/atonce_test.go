package edge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
)

func TestAtOnce_ForgetsOrganizationsWithoutRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, org := newAtOnce(1), id.New[tenancy.OrgTag]()
		leave, err := a.enter(t.Context(), org, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.enter(t.Context(), org, 1); !fault.Is(err, fault.RateLimited) {
			t.Errorf("the second has a place: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.enter(ctx, org, 1); !errors.Is(err, context.Canceled) || !fault.Is(err, fault.RateLimited) {
			t.Errorf("who is gone waits: %v", err)
		}
		if len(a.orgs) != 1 {
			t.Errorf("%d organizations are remembered", len(a.orgs))
		}
		leave()
		if len(a.orgs) != 0 {
			t.Errorf("%d organizations are remembered when nobody is left", len(a.orgs))
		}
		if leave, err = a.enter(t.Context(), org, 1); err != nil {
			t.Fatal(err)
		}
		leave()
	})
}

func TestAtOnce_CountsWeights(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, org, other := newAtOnce(10), id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
		six, err := a.enter(t.Context(), org, 6)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.enter(t.Context(), org, 5); !fault.Is(err, fault.RateLimited) {
			t.Errorf("eleven of ten were given: %v", err)
		}
		four, err := a.enter(t.Context(), org, 4)
		if err != nil {
			t.Fatal(err)
		}
		more, err := a.enter(t.Context(), other, 100)
		if err != nil {
			t.Fatalf("more than all is not given to who is alone: %v", err)
		}
		six()
		four()
		more()
		if len(a.orgs) != 0 {
			t.Errorf("%d organizations are remembered when nobody is left", len(a.orgs))
		}
	})
}
