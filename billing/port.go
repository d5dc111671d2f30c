package billing

import (
	"context"

	"crier/tenancy"
)

// Plans has the use cases of plans.
type Plans interface {
	// Of returns the plan and the subscription of an organization. The subscription is nil if it
	// has none.
	Of(ctx context.Context, o tenancy.Organization) (Plan, *Subscription, error)
	// Tiers returns the plans of the instance, the smallest first, or none if the instance has no
	// plans.
	Tiers() []Plan
}
