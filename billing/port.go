package billing

import (
	"context"

	"crier/tenancy"
)

// Plans provides the instance's plans.
type Plans interface {
	// Of returns an organization's plan and subscription. The subscription is nil if the
	// organization has none.
	Of(ctx context.Context, o tenancy.Organization) (Plan, *Subscription, error)
	// Tiers returns the instance's plans, smallest first. It returns none if the instance has no
	// plans.
	Tiers() []Plan
}
