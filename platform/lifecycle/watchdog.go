package lifecycle

import (
	"sync/atomic"
	"time"

	"crier/platform/clock"
)

// Watchdog records when a piece of background work began and ended, so that a health check or a
// metric can tell whether the work is stuck. Its times are monotonic (clock.Boot). The zero
// Watchdog is ready to use. It is safe for concurrent use once Limit is set.
type Watchdog struct {
	// Limit is how long a piece of work may take before it counts as stuck.
	Limit time.Duration
	// began is the time at which the current piece of work began, or 0 if there is none. ended is
	// the time at which the last piece of work ended.
	began, ended atomic.Int64
}

// Begin marks the start of a piece of work. If one is already running, its timer restarts.
func (w *Watchdog) Begin() { w.began.Store(int64(clock.Boot())) }

// End marks the end of the current piece of work.
func (w *Watchdog) End() {
	w.began.Store(0)
	w.ended.Store(int64(clock.Boot()))
}

// Busy returns how long the current piece of work has taken, or 0 if there is none.
func (w *Watchdog) Busy() time.Duration {
	began := w.began.Load()
	if began == 0 {
		return 0
	}
	return max(0, clock.Boot()-time.Duration(began))
}

// Idle returns how long ago the last piece of work ended. Before the first End, it returns the time
// since the machine started.
func (w *Watchdog) Idle() time.Duration { return max(0, clock.Boot()-time.Duration(w.ended.Load())) }

// Hangs reports whether the current piece of work has taken longer than Limit.
func (w *Watchdog) Hangs() bool { return w.Busy() > w.Limit }
