//go:build !linux

package clock

import "time"

// Boot is the time since some fixed moment. It also runs while this process is stopped or the machine sleeps.
func Boot() time.Duration { return time.Duration(time.Now().UnixNano()) }
