//go:build crash

package clock

import (
	"time"

	"crier/platform/env"
)

// offset is CRIER_CLOCK_OFFSET, such as -20s: how wrong this machine's clock is made to be.
func offset() time.Duration {
	v, _ := env.OS()("CRIER_CLOCK_OFFSET")
	d, _ := time.ParseDuration(v) // unset is zero, and the driver writes what it can read
	return d
}
