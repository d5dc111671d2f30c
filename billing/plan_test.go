package billing_test

import (
	"os"
	"strings"
	"testing"

	"crier/billing"
	"crier/platform/id"
	"crier/tenancy"
)

func TestParse_AcceptsThePlansFile(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../ops/plans.json")
	if err != nil {
		t.Fatal(err)
	}
	c, err := billing.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Plans) != len(billing.Tiers()) || !c.Limited() {
		t.Fatalf("got the plans %+v, want one of each tier", c.Plans)
	}
	for i, tier := range billing.Tiers() {
		if c.Plans[i].Tier != tier {
			t.Errorf("plan %d is %s, want %s", i, c.Plans[i].Tier, tier)
		}
	}
	free := c.Of(id.New[tenancy.OrgTag]())
	want := tenancy.Limits{Plan: "FREE", Channels: 3, Posts: 30, Webhooks: 2, Members: 1}
	if free.Limits() != want {
		t.Errorf("an organization has %+v, want %+v", free.Limits(), want)
	}
	if most := c.Plans[4]; most.Members != tenancy.Unlimited || most.MonthPrice != 99 || most.YearPrice != 990 {
		t.Errorf("the largest plan is %+v, want no limit of members, for 99 and 990", most)
	}
}

func TestParse_OrganizationWithOwnPlan(t *testing.T) {
	t.Parallel()
	org := id.New[tenancy.OrgTag]()
	c, err := billing.Parse([]byte(`{"default":"FREE","plans":{
		"PRO":{"channels":2,"posts":null,"webhooks":0,"members":7},
		"FREE":{"channels":1,"posts":1,"webhooks":1,"members":1}},
		"organizations":{"` + org.String() + `":"PRO"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := billing.Plan{Tier: billing.TierPro, Channels: 2, Posts: tenancy.Unlimited, Members: 7}
	if got := c.Of(org); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCatalogue_WithoutPlansHasNoLimits(t *testing.T) {
	t.Parallel()
	var none billing.Catalogue
	want := tenancy.NoLimits()
	want.Plan = "ULTIMATE"
	if got := none.Of(id.New[tenancy.OrgTag]()).Limits(); got != want || none.Limited() {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestParse_NamesTheFault(t *testing.T) {
	t.Parallel()
	free := `"FREE":{"channels":1,"posts":1,"webhooks":1,"members":1}`
	for name, c := range map[string]struct{ raw, want string }{
		"no JSON":              {`channels: 3`, "the JSON cannot be read"},
		"empty":                {``, "the JSON cannot be read"},
		"two values":           {`{"default":"FREE","plans":{` + free + `}} {}`, "more than one"},
		"a misspelt member":    {`{"default":"FREE","plans":{"FREE":{"chanels":1}}}`, "chanels"},
		"a misspelt tier":      {`{"default":"FRE","plans":{"FRE":{}}}`, "plans.FRE is not a tier"},
		"a limit that is left": {`{"default":"FREE","plans":{"FREE":{"channels":1,"posts":1,"webhooks":1}}}`, "plans.FREE.members is missing"},
		"a negative limit":     {`{"default":"FREE","plans":{"FREE":{"channels":-1}}}`, "a limit is -1"},
		"half a channel":       {`{"default":"FREE","plans":{"FREE":{"channels":1.5}}}`, "a limit is 1.5"},
		"a word":               {`{"default":"FREE","plans":{"FREE":{"channels":"many"}}}`, "a limit is \"many\""},
		"a negative price":     {`{"default":"FREE","plans":{"FREE":{"channels":1,"posts":1,"webhooks":1,"members":1,"yearPrice":-1}}}`, "a price below 0"},
		"no default":           {`{"plans":{` + free + `}}`, `default is ""`},
		"a default without":    {`{"default":"PRO","plans":{` + free + `}}`, `default is "PRO"`},
		"no id":                {`{"default":"FREE","plans":{` + free + `},"organizations":{"acme":"FREE"}}`, "organizations.acme is not the id"},
		"a plan without":       {`{"default":"FREE","plans":{` + free + `},"organizations":{"019d3f6e-0000-7000-8000-000000000000":"PRO"}}`, `is "PRO" but must be`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := billing.Parse([]byte(c.raw))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v, want an error with %q", got, err, c.want)
			}
		})
	}
}
