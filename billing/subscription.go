package billing

import (
	"time"

	"crier/tenancy"
)

// Subscription records that an organization has a plan other than FREE. A subscription from the
// plan file has no end.
type Subscription struct {
	Org  tenancy.OrgID
	Plan Plan
	// CreatedAt is when the subscription and its first billing month began.
	CreatedAt time.Time
}
