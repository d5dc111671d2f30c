package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// atStart is the boot clock's reading at the start of the process, or 0 if it cannot be read.
var atStart, _ = bootTime()

// Boot returns the time since the machine started, by a clock that cannot be set. The clock also
// runs while the process is stopped and while the machine sleeps.
//
// Every kernel that Go supports has that clock. If the system still refuses to read it, Boot uses
// Go's monotonic clock from the start of the process, which stops while the machine sleeps.
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
