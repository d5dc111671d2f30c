package edgetest

import (
	"context"

	"crier/billing"
	"crier/tenancy"
)

func (a accounts) Impersonable(_ context.Context, _ tenancy.Principal, text string) ([]tenancy.Impersonable, error) {
	return []tenancy.Impersonable{{
		ID: Membership, Role: tenancy.RoleAdmin, Organization: theOrganization(), Person: adaPerson(),
	}}, a.record("Impersonable", text)
}

func (a accounts) Impersonate(_ context.Context, p tenancy.Principal, to string) error {
	return a.record("Impersonate", to, p.Instance)
}

func (a accounts) CreateEnterpriseUser(
	_ context.Context, signed string, _ tenancy.Source,
) (tenancy.OrgID, string, error) {
	return OrgID, APIKey, a.record("CreateEnterpriseUser", signed)
}

// plans implements the plan port for an instance without plans.
type plans struct{}

func (plans) Of(context.Context, tenancy.Organization) (billing.Plan, *billing.Subscription, error) {
	return billing.Catalogue{}.Of(tenancy.OrgID{}), nil, nil
}

func (plans) Tiers() []billing.Plan { return nil }
