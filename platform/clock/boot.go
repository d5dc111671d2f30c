package clock

import "time"

// started has the monotonic reading of the start of the process.
var started = time.Now()

// monotonic returns the reading of a clock that showed base when the process started and that nobody can set.
func monotonic(base time.Duration) time.Duration { return base + time.Since(started) }
