package service

import (
	"testing"

	"crier/billing"
	"crier/platform/id"
	"crier/tenancy"
)

func TestOnDefault_CountsOnlyIfTheDefaultPlanLimits(t *testing.T) {
	t.Parallel()
	unlimited := billing.Plan{
		Channels: tenancy.Unlimited, Posts: tenancy.Unlimited, Webhooks: tenancy.Unlimited, Members: tenancy.Unlimited,
	}
	free, pro := unlimited, unlimited
	free.Tier, pro.Tier = billing.TierFree, billing.TierPro
	limited := free
	limited.Posts = 5
	assigned, other := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
	for name, c := range map[string]struct {
		plans []billing.Plan
		want  int
	}{
		"no plans":                       {want: 0},
		"a default plan without limits":  {plans: []billing.Plan{free, pro}, want: 0},
		"a default plan that limits one": {plans: []billing.Plan{limited, pro}, want: 1},
	} {
		plans := New(billing.Catalogue{
			Plans: c.plans, Default: billing.TierFree, Assigned: map[tenancy.OrgID]billing.Tier{assigned: billing.TierPro},
		})
		if _, got := plans.OnDefault([]tenancy.OrgID{assigned, other}); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
