package worker

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"crier/platform/clock"
)

// loopTimer has the times of the work of one loop, for the watchdog. They are monotonic (clock.Boot). It is safe for
// concurrent use.
type loopTimer struct {
	name string
	// limit is the time after which a piece of work hangs.
	limit time.Duration
	// began is when the current piece of work began, 0 while the loop waits for work. ended is when the last one ended.
	began atomic.Int64
	ended atomic.Int64
}

// begin may be called again during a piece of work: its age then counts from the last call.
func (p *loopTimer) begin() { p.began.Store(int64(clock.Boot())) }

func (p *loopTimer) end() {
	p.began.Store(0)
	p.ended.Store(int64(clock.Boot()))
}

func (p *loopTimer) age() time.Duration {
	began := p.began.Load()
	if began == 0 {
		return 0
	}
	return max(0, clock.Boot()-time.Duration(began))
}

func (p *loopTimer) idle() time.Duration { return max(0, clock.Boot()-time.Duration(p.ended.Load())) }

func (p *loopTimer) hangs() bool { return p.age() > p.limit }

// The limits of the loops, longer than the deadlines of their statements. Many outcomes that the database refuses one
// by one may take the finish loop longer: then other processes take the shards, and may be delayed as long.
const (
	claimHangs  = 30 * time.Second
	finishHangs = 45 * time.Second
	sweepHangs  = 90 * time.Second
	watchEvery  = 5 * time.Second
)

// watch suspends this process in the cluster while one of its loops hangs, so that other processes publish for its
// organizations. It acts when it sees a hang twice, because after a stop of the whole process every age is too high for
// a moment.
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

// Check returns an error that names a loop that hangs, and for how long. It is a health check of the process; unlike
// watch it reports a hang at once.
func (w *Worker) Check(context.Context) error {
	for _, p := range w.loopTimers() {
		if p.hangs() {
			return fmt.Errorf("the %s loop has hung for %s", p.name, p.age().Round(time.Second))
		}
	}
	return nil
}
