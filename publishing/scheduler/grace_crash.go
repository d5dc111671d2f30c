//go:build crash

package scheduler

import (
	"time"
)

// claimGrace is how much longer a claim lasts than the platform calls that it covers. It is short
// so that a test can outlast a claim.
const claimGrace = 3 * time.Second
