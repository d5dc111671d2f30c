package clock

import "time"

// started is the start time of the process, with a monotonic reading.
var started = time.Now()

func monotonic(base time.Duration) time.Duration { return base + time.Since(started) }
