package publishing

import (
	"context"
	"time"

	"crier/tenancy"
)

// Waker wakes the actor of an organization. Callers must first commit what is due.
type Waker interface {
	// Wake reports that the organization has a post due at the given time; the zero time means now.
	// It never fails: if a wake-up is lost, the sweep finds the post.
	Wake(ctx context.Context, org tenancy.OrgID, due time.Time)
}
