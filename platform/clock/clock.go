// Package clock reads the clocks of the machine. No other package calls time.Now, so that every rule about time can be
// tested.
package clock

import (
	"context"
	"time"
)

// Clock is a source of the current time: System in the product, Func in tests.
type Clock interface {
	// Now returns the current time in UTC.
	Now() time.Time
}

// System is the wall clock of the machine. Its times have no monotonic reading, so that the difference of two is wrong
// when the clock was set in between. Boot is for durations.
type System struct{}

// Now returns the time of the machine in UTC, plus CRIER_CLOCK_OFFSET in builds with the tag crash.
func (System) Now() time.Time { return time.Now().Add(offset()).UTC() }

// IsInjected reports whether c does not show the time of the machine on purpose: it is no System, or has an offset.
func IsInjected(c Clock) bool {
	_, ok := c.(System)
	return !ok || offset() != 0
}

// Func is a function used as a Clock, for tests.
type Func func() time.Time

// Now calls f, which may return a time in any location, and converts the result to UTC.
func (f Func) Now() time.Time { return f().UTC() }

// Sleep waits for d and returns nil. When ctx ends first, it returns the error of ctx.
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
