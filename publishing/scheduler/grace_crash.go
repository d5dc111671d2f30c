//go:build crash

package scheduler

import (
	"time"
)

// claimGrace is added to the deadline of a request to get the duration of a claim. It is short, so
// that a test can outlast a claim.
const claimGrace = 3 * time.Second
