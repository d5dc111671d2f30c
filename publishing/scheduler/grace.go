//go:build !crash

package scheduler

import (
	"time"
)

// claimGrace is how much longer a claim lasts than the platform calls made under it.
const claimGrace = 30 * time.Second
