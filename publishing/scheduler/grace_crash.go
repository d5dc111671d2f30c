//go:build crash

package scheduler

import (
	"time"
)

// claimGrace is how much longer a claim lasts than the platform calls made under it. It is short so
// that a test can wait until a claim expires.
const claimGrace = 3 * time.Second
