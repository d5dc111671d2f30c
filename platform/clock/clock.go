// Package clock reads the machine's clocks. No other package calls time.Now, so that every rule
// about time can be tested.
package clock

import (
	"context"
	"time"
)

// Clock is a source of the current time. System is used in production, and Func in tests.
type Clock interface {
	// Now returns the current time in UTC.
	Now() time.Time
}

// System is the machine's wall clock. Its times have no monotonic reading, so the difference
// between two of them is wrong if the clock was set in between. Use Boot for durations.
type System struct{}

// Now returns the machine's time in UTC. In builds with the crash tag, it adds the duration in
// CRIER_CLOCK_OFFSET.
func (System) Now() time.Time { return time.Now().Add(offset()).UTC() }

// IsInjected reports whether c deliberately deviates from the machine's time, because it is not a
// System or because Now adds an offset.
func IsInjected(c Clock) bool {
	_, ok := c.(System)
	return !ok || offset() != 0
}

// Func is a function used as a Clock, for tests.
type Func func() time.Time

// Now calls f, which may return a time in any location, and converts the result to UTC.
func (f Func) Now() time.Time { return f().UTC() }

// Sleep waits for d and returns nil. If ctx ends first, it returns ctx's error.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
