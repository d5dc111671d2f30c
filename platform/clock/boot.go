package clock

import "time"

// started is the start of the process, with a monotonic reading.
var started = time.Now()

// monotonic returns base plus the time since the process started, by Go's monotonic clock.
func monotonic(base time.Duration) time.Duration { return base + time.Since(started) }
