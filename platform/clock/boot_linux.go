package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Boot is the time since the machine started. It also runs while this process is stopped or the machine sleeps, and nobody can set it.
func Boot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return time.Duration(time.Now().UnixNano()) // a kernel older than the clock
	}
	return time.Duration(t.Nano())
}
