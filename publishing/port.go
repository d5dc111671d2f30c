package publishing

import (
	"context"
	"time"

	"crier/tenancy"
)

// Waker wakes an organization's actor. Before calling a Waker, commit the transaction that stores
// the due posts.
type Waker interface {
	// Wake reports that the organization has a post that is due at the given time. The zero time
	// means now. Wake never fails. If a wake-up is lost, the sweep finds the post later.
	Wake(ctx context.Context, org tenancy.OrgID, due time.Time)
}
