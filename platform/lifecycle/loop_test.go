package lifecycle

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// rounds records when the steps of a loop begin, in seconds since its start.
type rounds struct {
	began time.Time
	mu    sync.Mutex
	at    []float64
}

func (r *rounds) step(do Step) Step {
	return func(ctx context.Context) (bool, error) {
		r.mu.Lock()
		r.at = append(r.at, time.Since(r.began).Seconds())
		r.mu.Unlock()
		return do(ctx)
	}
}

func (r *rounds) want(t *testing.T, want ...float64) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.at, want) {
		t.Errorf("rounds began at %v s, want %v", r.at, want)
	}
}

// taking returns a step that takes the duration d.
func taking(d time.Duration) Step {
	return func(context.Context) (bool, error) {
		time.Sleep(d)
		return false, nil
	}
}

// moreTimes returns a step that reports more work n times.
func moreTimes(n int) Step {
	return func(context.Context) (bool, error) {
		n--
		return n >= 0, nil
	}
}

func failing(context.Context) (bool, error) { return true, errBroken }

func TestLoop_BeginsRounds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		rules LoopRules
		steps []Step
		wake  []time.Duration // since the start
		want  []float64       // in the first 10.5 s
	}{
		{name: "at once and after the interval", rules: LoopRules{Interval: 5 * time.Second},
			steps: []Step{taking(0)}, want: []float64{0, 5, 10}},
		{name: "an interval after the end of a round", rules: LoopRules{Interval: 3 * time.Second},
			steps: []Step{taking(2 * time.Second)}, want: []float64{0, 5, 10}},
		{name: "at once while there is more to do", rules: LoopRules{Interval: 6 * time.Second},
			steps: []Step{moreTimes(2)}, want: []float64{0, 0, 0, 6}},
		{name: "after a gap while there is more to do", rules: LoopRules{Interval: 6 * time.Second, Gap: time.Second},
			steps: []Step{moreTimes(2)}, want: []float64{0, 1, 2, 8}},
		{name: "at fixed times", rules: LoopRules{Interval: 4 * time.Second, Ticks: true},
			steps: []Step{taking(3 * time.Second)}, want: []float64{0, 4, 8}},
		{name: "after a gap when late for the fixed time", rules: LoopRules{Interval: 4 * time.Second, Ticks: true, Gap: time.Second},
			steps: []Step{taking(5 * time.Second)}, want: []float64{0, 6}},
		{name: "when woken", rules: LoopRules{Interval: 5 * time.Second},
			steps: []Step{taking(0)}, wake: []time.Duration{2 * time.Second}, want: []float64{0, 2, 7}},
		{name: "when woken, without moving the fixed times", rules: LoopRules{Interval: 5 * time.Second, Ticks: true},
			steps: []Step{taking(0)}, wake: []time.Duration{2 * time.Second, 7 * time.Second}, want: []float64{0, 2, 5, 7, 10}},
		{name: "at once when woken during a round", rules: LoopRules{Interval: 9 * time.Second},
			steps: []Step{taking(2 * time.Second)}, wake: []time.Duration{time.Second}, want: []float64{0, 2}},
		{name: "after a gap when woken, once for all calls", rules: LoopRules{Interval: 9 * time.Second, Gap: 3 * time.Second},
			steps: []Step{taking(0)}, wake: []time.Duration{time.Second, 2 * time.Second}, want: []float64{0, 3}},
		{name: "an interval after an error", rules: LoopRules{Interval: 4 * time.Second},
			steps: []Step{failing}, want: []float64{0, 4, 8}},
		{name: "a pause after an error, even when woken", rules: LoopRules{Interval: 9 * time.Second, ErrorPause: 4 * time.Second},
			steps: []Step{failing}, wake: []time.Duration{time.Second}, want: []float64{0, 4, 8}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &rounds{began: time.Now()}
				loop := NewLoop(tt.rules)
				steps := slices.Clone(tt.steps)
				steps[0] = r.step(steps[0])
				loop.Start(t.Context(), steps...)
				for _, at := range tt.wake {
					time.AfterFunc(at, loop.Wake)
				}
				time.Sleep(10500 * time.Millisecond)
				r.want(t, tt.want...)
				if err := loop.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestLoop_DoesEveryStepWithinItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var failed []error
		loop := NewLoop(LoopRules{
			Interval: time.Hour, Timeout: 2 * time.Second,
			Failed: func(_ context.Context, err error) { failed = append(failed, err) },
		})
		r := &rounds{began: time.Now()}
		slow := func(ctx context.Context) (bool, error) {
			<-ctx.Done()
			return false, ctx.Err()
		}
		loop.Start(t.Context(), r.step(slow), r.step(slow), r.step(moreTimes(1)))
		time.Sleep(time.Minute)
		r.want(t, 0, 2, 4, 4, 6, 8)
		if err := loop.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if len(failed) != 4 || !errors.Is(failed[0], context.DeadlineExceeded) {
			t.Errorf("got the errors %v, want four of the deadline", failed)
		}
	})
}

func TestLoop_StopCancelsTheStepAndWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loop := NewLoop(LoopRules{
			Interval: time.Second,
			Failed:   func(_ context.Context, err error) { t.Errorf("Stop was reported as the error %v", err) },
		})
		if err := loop.Stop(t.Context()); err != nil {
			t.Errorf("before Start: %v", err)
		}
		starting, started := context.WithCancel(t.Context())
		calls := 0
		step := func(ctx context.Context) (bool, error) {
			calls++
			<-ctx.Done()
			time.Sleep(5 * time.Second)
			return true, ctx.Err()
		}
		loop.Start(starting, step, step)
		started()
		time.Sleep(time.Minute)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := loop.Stop(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v from Stop with a shorter deadline than the step, want the deadline", err)
		}
		if err := loop.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if calls != 1 {
			t.Errorf("got %d calls, want one: no step begins after Stop", calls)
		}
	})
}

func TestWatchdog_HangsWhileWorkTakesTooLong(t *testing.T) {
	t.Parallel()
	w := &Watchdog{Limit: time.Hour}
	if w.Hangs() || w.Busy() != 0 {
		t.Error("hangs before the first piece of work")
	}
	w.Begin()
	for w.Busy() == 0 { // Busy does not use the clock of synctest
	}
	if w.Hangs() {
		t.Error("hangs within its limit")
	}
	w.Limit = 0
	if !w.Hangs() {
		t.Error("does not hang after its limit")
	}
	w.End()
	if w.Hangs() || w.Busy() != 0 || w.Idle() > time.Minute {
		t.Errorf("after the end: busy for %s, idle for %s", w.Busy(), w.Idle())
	}
}

func TestLoop_ReportsToItsWatchdog(t *testing.T) {
	t.Parallel()
	w := &Watchdog{Limit: time.Hour}
	loop := NewLoop(LoopRules{Interval: time.Hour, Watchdog: w})
	began, end := make(chan struct{}), make(chan struct{})
	loop.Start(t.Context(), func(context.Context) (bool, error) {
		close(began)
		<-end
		return false, nil
	})
	<-began
	for w.Busy() == 0 {
	}
	close(end)
	for w.Busy() != 0 {
	}
	if err := loop.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
