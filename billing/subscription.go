package billing

import (
	"time"

	"crier/tenancy"
)

// Subscription is that an organization has a plan beyond FREE. One of the plan file has no end.
type Subscription struct {
	Org  tenancy.OrgID
	Plan Plan
	// CreatedAt is when it began. Its billing months count from there.
	CreatedAt time.Time
}
