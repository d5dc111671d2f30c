// Package service tells which plan an organization has, inside the transactions of others and for
// the routes of plans.
package service

import (
	"context"

	"crier/billing"
	billingstore "crier/billing/store"
	"crier/platform/pg"
	"crier/tenancy"
)

// Plans implements the use cases of plans. Its method Limits is the port through which publishing
// and tenancy ask what an organization may have. It is safe for concurrent use.
type Plans struct{ catalogue billing.Catalogue }

// New returns the plans of an instance.
func New(catalogue billing.Catalogue) *Plans { return &Plans{catalogue: catalogue} }

// Limits returns what the plan of an organization allows. It reads with q, which must be a
// transaction of the organization. After an error, which comes from Postgres, the transaction must
// end.
func (s *Plans) Limits(ctx context.Context, q pg.Querier, org tenancy.OrgID) (tenancy.Limits, error) {
	limits := s.catalogue.Of(org).Limits()
	if !s.catalogue.Limited() {
		return limits, nil
	}
	since, err := billingstore.MonthsSince(ctx, q, org)
	limits.Since = since
	return limits, err
}

// OnDefault returns the name of the default plan and how many of the organizations have it. The
// number is 0 if the plan has no limits, as on an instance without plans.
func (s *Plans) OnDefault(orgs []tenancy.OrgID) (plan string, n int) {
	plan = string(s.catalogue.Default)
	for _, org := range orgs {
		if p := s.catalogue.Of(org); p.Tier == s.catalogue.Default && p.LimitsAnything() {
			n++
		}
	}
	return plan, n
}

// Tiers returns the plans of the instance, the smallest first, or none if the instance has no
// plans.
func (s *Plans) Tiers() []billing.Plan { return s.catalogue.Plans }

// Of returns the plan and the subscription of an organization. The subscription is nil if the plan
// is FREE or the instance has no plans.
func (s *Plans) Of(_ context.Context, o tenancy.Organization) (billing.Plan, *billing.Subscription, error) {
	plan := s.catalogue.Of(o.ID)
	if !s.catalogue.Limited() || plan.Tier == billing.TierFree {
		return plan, nil, nil
	}
	return plan, &billing.Subscription{Org: o.ID, Plan: plan, CreatedAt: o.CreatedAt}, nil
}
