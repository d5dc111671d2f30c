// Package clock is the only door to the wall clock, so that every rule about time can be tested.
package clock

import (
	"context"
	"time"
)

// Clock tells the time. Now is always UTC.
type Clock interface {
	Now() time.Time
}

// System is the machine's clock.
type System struct{}

// Now returns the machine's time in UTC.
func (System) Now() time.Time { return time.Now().Add(offset()).UTC() }

// Func makes a Clock of a function, for tests.
type Func func() time.Time

// Now returns what the function returns, in UTC.
func (f Func) Now() time.Time { return f().UTC() }

// Sleep waits for d, or until ctx ends, whose error it returns then.
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
