package publishing

import (
	"context"
	"time"

	"crier/tenancy"
)

// Waker tells the scheduler that an organization has something due; it never fails a request, because the sweep finds what a lost call would have told.
type Waker interface {
	Wake(ctx context.Context, org tenancy.OrgID, due time.Time)
}
