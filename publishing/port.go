package publishing

import (
	"context"
	"time"

	"crier/tenancy"
)

// Waker wakes the actor of an organization. Its callers have committed what is due before they call it.
type Waker interface {
	// Wake reports that the organization has a post due at the given time; the zero time means now. It never fails:
	// the sweep finds a post whose wake-up was lost.
	Wake(ctx context.Context, org tenancy.OrgID, due time.Time)
}
