package billing

import (
	"context"

	"crier/tenancy"
)

// Plans are the use cases of plans.
type Plans interface {
	// Of returns the plan of an organization, and its subscription, nil without one.
	Of(ctx context.Context, o tenancy.Organization) (Plan, *Subscription, error)
	// Tiers returns the plans of the instance, the smallest first; none on an instance without plans.
	Tiers() []Plan
}
