package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// atStart is the boot clock's time at process start, or 0 if the clock cannot be read.
var atStart, _ = bootTime()

// Boot returns the time since the machine started, measured by a clock that cannot be set. The
// clock keeps running while the process is stopped and while the machine sleeps.
//
// Every kernel that Go supports has this clock. If it still cannot be read, Boot falls back to Go's
// monotonic clock, which starts with the process and stops while the machine sleeps.
func Boot() time.Duration {
	if now, ok := bootTime(); ok {
		return now
	}
	return monotonic(atStart)
}

func bootTime() (now time.Duration, ok bool) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
