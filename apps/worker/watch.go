package worker

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"crier/platform/clock"
)

// loopTimer is what one loop shows of itself to those who watch it: when it began the piece of work that it does now.
// Times are monotonic.
type loopTimer struct {
	name  string
	limit time.Duration // a piece of work that takes longer hangs
	began atomic.Int64  // clock.Boot; 0 = it waits for work
	ended atomic.Int64
}

// begin says that the loop starts a piece of work, or goes on to the next.
func (p *loopTimer) begin() { p.began.Store(int64(clock.Boot())) }

// end says that the loop waits for work.
func (p *loopTimer) end() {
	p.began.Store(0)
	p.ended.Store(int64(clock.Boot()))
}

// age is how long the piece of work takes already that the loop does now; 0 when it waits.
func (p *loopTimer) age() time.Duration {
	began := p.began.Load()
	if began == 0 {
		return 0
	}
	return max(0, clock.Boot()-time.Duration(began))
}

// idle is how long ago the last piece of work ended.
func (p *loopTimer) idle() time.Duration { return max(0, clock.Boot()-time.Duration(p.ended.Load())) }

func (p *loopTimer) hangs() bool { return p.age() > p.limit }

// Limits of the loops' pieces of work, longer than the deadlines of their statements. Many outcomes that the database
// refuses one by one may take the finish loop longer; then others take over, and are held up as long.
const (
	claimHangs  = 30 * time.Second
	finishHangs = 45 * time.Second
	sweepHangs  = 90 * time.Second
	watchEvery  = 5 * time.Second
)

// watch suspends this process in the cluster while one of its loops hangs, so that others publish for its
// organizations. It runs beside the loops, and sees a hang twice before it acts: after a stop of the whole process
// every age is too high for a moment.
func (w *Worker) watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	suspended, seen := false, ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		hangs := ""
		for _, p := range w.loopTimers() {
			if p.hangs() {
				hangs = p.name
			}
		}
		switch {
		case hangs != "" && hangs == seen && !suspended:
			w.deps.Log.Error("a loop hangs; the organizations are left to other processes", "loop", hangs)
			w.deps.Suspend("the " + hangs + " loop hangs")
			suspended = true
		case hangs == "" && suspended:
			w.deps.Log.Warn("every loop goes on; the organizations are taken back")
			w.deps.Resume()
			suspended = false
		}
		seen = hangs
	}
}

func (w *Worker) loopTimers() []*loopTimer {
	return []*loopTimer{&w.claiming, &w.finishing, &w.sweeping}
}

// Check returns an error that names the loops that hang, for the health of the process.
func (w *Worker) Check(context.Context) error {
	for _, p := range w.loopTimers() {
		if p.hangs() {
			return fmt.Errorf("the %s loop has hung for %s", p.name, p.age().Round(time.Second))
		}
	}
	return nil
}
