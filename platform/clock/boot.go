package clock

import "time"

// started is the time at which the process started, with a monotonic reading.
var started = time.Now()

func monotonic(base time.Duration) time.Duration { return base + time.Since(started) }
