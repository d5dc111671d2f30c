package worker

import (
	"time"

	"crier/platform/clock"
)

// gap is the least time between two statements of one loop that have little to do each: what comes in meanwhile shares the next.
const gap = 20 * time.Millisecond

// pace keeps a busy loop from doing its work in crumbs. The first piece of work after a rest never waits.
type pace struct {
	clock clock.Clock
	last  time.Time
}

func (w *Worker) newPace() *pace { return &pace{clock: w.deps.Clock} }

// wait lets more work gather, unless there is enough or all is over.
func (p *pace) wait(over <-chan struct{}, enough bool) {
	rest := gap - p.clock.Now().Sub(p.last)
	if enough || rest <= 0 {
		return
	}
	t := time.NewTimer(rest)
	defer t.Stop()
	select {
	case <-t.C:
	case <-over:
	}
}

func (p *pace) done() { p.last = p.clock.Now() }
