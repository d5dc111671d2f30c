//go:build !linux

package clock

import "time"

// Boot returns the time since this process started, by a clock that cannot be set. The clock also runs while the
// process is stopped. Whether it runs while the machine sleeps depends on the system: on some, such as macOS, it stops,
// and a limit measured by it lasts longer by the time of the sleep.
func Boot() time.Duration { return monotonic(0) }
