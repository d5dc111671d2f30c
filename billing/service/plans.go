// Package service reports which plan an organization has. The plan routes use it, and other
// packages call it within their transactions.
package service

import (
	"context"

	"crier/billing"
	billingstore "crier/billing/store"
	"crier/platform/pg"
	"crier/tenancy"
)

// Plans implements billing.Plans. Publishing and tenancy call Limits to find out what an
// organization's plan allows. Plans is safe for concurrent use.
type Plans struct{ catalogue billing.Catalogue }

// New returns the instance's plans.
func New(catalogue billing.Catalogue) *Plans { return &Plans{catalogue: catalogue} }

// Limits returns what an organization's plan allows. It reads the database through q, which must be
// a transaction in the organization. It returns Postgres errors unchanged. After an error, the
// transaction must end.
func (s *Plans) Limits(ctx context.Context, q pg.Querier, org tenancy.OrgID) (tenancy.Limits, error) {
	limits := s.catalogue.Of(org).Limits()
	if !s.catalogue.Limited() {
		return limits, nil
	}
	since, err := billingstore.MonthsSince(ctx, q, org)
	limits.Since = since
	return limits, err
}

// OnDefault returns the default plan's name and how many of the given organizations are on that
// plan. n is 0 if the plan has no limits, as on an instance without plans.
func (s *Plans) OnDefault(orgs []tenancy.OrgID) (plan string, n int) {
	plan = string(s.catalogue.Default)
	for _, org := range orgs {
		if p := s.catalogue.Of(org); p.Tier == s.catalogue.Default && p.LimitsAnything() {
			n++
		}
	}
	return plan, n
}

// Tiers returns the instance's plans, smallest first. It returns none if the instance has no plans.
func (s *Plans) Tiers() []billing.Plan { return s.catalogue.Plans }

// Of returns an organization's plan and subscription. The subscription is nil if the plan is FREE
// or the instance has no plans.
func (s *Plans) Of(_ context.Context, o tenancy.Organization) (billing.Plan, *billing.Subscription, error) {
	plan := s.catalogue.Of(o.ID)
	if !s.catalogue.Limited() || plan.Tier == billing.TierFree {
		return plan, nil, nil
	}
	return plan, &billing.Subscription{Org: o.ID, Plan: plan, CreatedAt: o.CreatedAt}, nil
}
