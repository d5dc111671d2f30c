package worker

import (
	"context"
	"fmt"
	"iter"
	"time"

	"crier/platform/lifecycle"
)

// The limits of the loops, longer than the deadlines of their statements. Many outcomes that the database refuses one
// by one may take the finish loop longer: then other processes take the shards, and may be delayed as long.
const (
	claimHangs  = 30 * time.Second
	finishHangs = 45 * time.Second
	sweepHangs  = 90 * time.Second
	watchEvery  = 5 * time.Second
)

// hang is what the watch has seen and done.
type hang struct {
	suspended bool
	loop      string // the loop that hung when the watch last looked, or ""
}

// watch suspends this process in the cluster while one of its loops hangs, so that other processes publish for its
// organizations. It acts when it sees a hang twice, because after a stop of the whole process every age is too high for
// a moment.
func (w *Worker) watch(context.Context) (more bool, err error) {
	hangs := ""
	for name, d := range w.watchdogs() {
		if d.Hangs() {
			hangs = name
		}
	}
	switch {
	case hangs != "" && hangs == w.hang.loop && !w.hang.suspended:
		w.deps.Log.Error("a loop hangs; the organizations are left to other processes", "loop", hangs)
		w.deps.Suspend("the " + hangs + " loop hangs")
		w.hang.suspended = true
	case hangs == "" && w.hang.suspended:
		w.deps.Log.Warn("every loop goes on; the organizations are taken back")
		w.deps.Resume()
		w.hang.suspended = false
	}
	w.hang.loop = hangs
	return false, nil
}

// watchdogs returns the watchdogs of the loops with their names, in a fixed order.
func (w *Worker) watchdogs() iter.Seq2[string, *lifecycle.Watchdog] {
	return func(yield func(string, *lifecycle.Watchdog) bool) {
		_ = yield("claim", &w.claiming) && yield("finish", &w.finishing) && yield("sweep", &w.sweeping)
	}
}

// Check returns an error that names a loop that hangs, and for how long. It is a health check of the process; unlike
// watch it reports a hang at once.
func (w *Worker) Check(context.Context) error {
	for name, d := range w.watchdogs() {
		if d.Hangs() {
			return fmt.Errorf("the %s loop has hung for %s", name, d.Busy().Round(time.Second))
		}
	}
	return nil
}
