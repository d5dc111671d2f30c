//go:build crash

package clock

import (
	"time"

	"crier/platform/env"
)

// offset returns the duration in CRIER_CLOCK_OFFSET, such as -20s, which is added to this process's
// wall clock.
func offset() time.Duration {
	v, _ := env.OS()("CRIER_CLOCK_OFFSET")
	d, _ := time.ParseDuration(v) // zero if unset; the crash test writes only valid durations
	return d
}
