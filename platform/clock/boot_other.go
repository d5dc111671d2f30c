//go:build !linux

package clock

import "time"

// Boot returns the time since this process started, by a clock that cannot be set. The clock also
// runs while the process is stopped. It depends on the system whether it runs while the machine
// sleeps: on some, such as macOS, it stops, and a limit measured with it is extended by the time
// asleep.
func Boot() time.Duration { return monotonic(0) }
