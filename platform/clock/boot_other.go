//go:build !linux

package clock

import "time"

// Boot returns the time since this process started, measured by a clock that cannot be set. The
// clock keeps running while the process is stopped. On some systems, such as macOS, it stops while
// the machine sleeps, which extends a limit measured with Boot by the time slept.
func Boot() time.Duration { return monotonic(0) }
