//go:build !linux

package clock

import "time"

// Boot returns the time since this process started, by a clock that cannot be set. The clock also
// runs while the process is stopped. Whether it runs while the machine sleeps depends on the
// system. On some systems, such as macOS, it stops, so a limit measured with Boot is extended by
// the time asleep.
func Boot() time.Duration { return monotonic(0) }
