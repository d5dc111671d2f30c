//go:build !crash

package scheduler

import (
	"time"
)

// claimGrace is added to the deadline of a request to get the time for which a post is claimed.
const claimGrace = 30 * time.Second
