package lifecycle

import (
	"sync/atomic"
	"time"

	"crier/platform/clock"
)

// Watchdog records when a piece of background work began and ended, so that a health check or a metric can tell whether
// it hangs. Its times are monotonic (clock.Boot). The zero Watchdog is ready for use, and safe for concurrent use once
// Limit is set.
type Watchdog struct {
	// Limit is the time after which a piece of work hangs.
	Limit time.Duration
	// began is when the current piece of work began, 0 between two. ended is when the last one ended.
	began, ended atomic.Int64
}

// Begin marks the start of a piece of work. During one, it starts the time of the next.
func (w *Watchdog) Begin() { w.began.Store(int64(clock.Boot())) }

// End marks the end of the current piece of work.
func (w *Watchdog) End() {
	w.began.Store(0)
	w.ended.Store(int64(clock.Boot()))
}

// Busy returns how long the current piece of work has taken, or 0 between two.
func (w *Watchdog) Busy() time.Duration {
	began := w.began.Load()
	if began == 0 {
		return 0
	}
	return max(0, clock.Boot()-time.Duration(began))
}

// Idle returns how long ago the last piece of work ended. Before the first End it counts from the start of the machine.
func (w *Watchdog) Idle() time.Duration { return max(0, clock.Boot()-time.Duration(w.ended.Load())) }

// Hangs returns true if the current piece of work has taken longer than Limit.
func (w *Watchdog) Hangs() bool { return w.Busy() > w.Limit }
