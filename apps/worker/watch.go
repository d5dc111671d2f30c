package worker

import (
	"context"
	"fmt"
	"iter"
	"time"

	"crier/platform/lifecycle"
)

// How long each loop may work without a break before it counts as hanging. The limits are longer
// than the timeouts of the loops' statements. If the database rejects many outcomes one by one, the
// finish loop may exceed its limit. Other processes then take over the shards, and may be delayed
// for just as long.
const (
	claimHangs  = 30 * time.Second
	finishHangs = 45 * time.Second
	sweepHangs  = 90 * time.Second
	watchEvery  = 5 * time.Second
)

// hang holds the state that watch keeps between checks.
type hang struct {
	suspended bool
	loop      string // the loop that hung at the last check, or ""
}

// watch suspends this process in the cluster while one of its loops hangs, so that other processes
// publish for its organizations. It acts only if two consecutive checks find a hanging loop. After
// the operating system has paused the process, all work briefly appears to have taken too long.
func (w *Worker) watch(context.Context) (more bool, err error) {
	hangs := ""
	for name, d := range w.watchdogs() {
		if d.Hangs() {
			hangs = name
		}
	}
	switch {
	case hangs != "" && hangs == w.hang.loop && !w.hang.suspended:
		w.deps.Log.Error("a loop is hanging; other processes take over the organizations", "loop", hangs)
		w.deps.Suspend("the " + hangs + " loop is hanging")
		w.hang.suspended = true
	case hangs == "" && w.hang.suspended:
		w.deps.Log.Warn("all loops are running again; taking the organizations back")
		w.deps.Resume()
		w.hang.suspended = false
	}
	w.hang.loop = hangs
	return false, nil
}

// watchdogs returns the loops' names and watchdogs in a fixed order.
func (w *Worker) watchdogs() iter.Seq2[string, *lifecycle.Watchdog] {
	return func(yield func(string, *lifecycle.Watchdog) bool) {
		_ = yield("claim", &w.claiming) && yield("finish", &w.finishing) && yield("sweep", &w.sweeping)
	}
}

// Check returns an error that names a hanging loop and says how long the loop has hung. It serves
// as the process's health check. Unlike watch, it reports a hang at once.
func (w *Worker) Check(context.Context) error {
	for name, d := range w.watchdogs() {
		if d.Hangs() {
			return fmt.Errorf("the %s loop has hung for %s", name, d.Busy().Round(time.Second))
		}
	}
	return nil
}
