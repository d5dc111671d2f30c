//go:build !linux

package clock

import "time"

// Boot returns the time since this process started, by a clock that nobody can set. It runs while the process is
// stopped. Whether it runs while the machine sleeps depends on the system: on some, such as macOS, it stops, and a
// limit that is measured by it then lasts longer by that sleep.
func Boot() time.Duration { return monotonic(0) }
