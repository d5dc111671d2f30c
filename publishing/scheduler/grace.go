//go:build !crash

package scheduler

import (
	"time"
)

// claimGrace is added to the deadline of a request to get the duration of a claim.
const claimGrace = 30 * time.Second
