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

func TestAtOnce_KeepsNothingOfWhomIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, org := newAtOnce(1), id.New[tenancy.OrgTag]()
		leave, err := a.enter(t.Context(), org)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.enter(t.Context(), org); !fault.Is(err, fault.RateLimited) {
			t.Errorf("the second has a place: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.enter(ctx, org); !errors.Is(err, context.Canceled) {
			t.Errorf("who is gone waits: %v", err)
		}
		if len(a.orgs) != 1 {
			t.Errorf("%d organizations are remembered", len(a.orgs))
		}
		leave()
		if len(a.orgs) != 0 {
			t.Errorf("%d organizations are remembered when nobody is left", len(a.orgs))
		}
		if leave, err = a.enter(t.Context(), org); err != nil {
			t.Fatal(err)
		}
		leave()
	})
}
