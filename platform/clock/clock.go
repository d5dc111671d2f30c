// Package clock reads the clocks of the machine. No other package calls time.Now, so that every rule about time can be
// tested.
package clock

import (
	"context"
	"time"
)

// Clock is a source of the current time.
type Clock interface {
	// Now returns the current time in UTC.
	Now() time.Time
}

// System is the wall clock of the machine.
type System struct{}

// Now returns the time of the machine in UTC.
func (System) Now() time.Time { return time.Now().Add(offset()).UTC() }

// Func is a function used as a Clock, for tests.
type Func func() time.Time

// Now returns what the function returns, in UTC.
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
