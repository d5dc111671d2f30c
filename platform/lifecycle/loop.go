package lifecycle

import (
	"context"
	"sync"
	"time"

	"crier/platform/clock"
)

// Step does part of a round's work. If it returns true for more, the next round begins without
// waiting for the interval. more is ignored if Step returns an error.
type Step func(ctx context.Context) (more bool, err error)

// LoopRules configures a Loop. Only Interval is required.
type LoopRules struct {
	// Interval is the pause after a round.
	Interval time.Duration
	// Ticks makes rounds begin at fixed times, Interval apart. Neither the end of the previous
	// round nor Wake moves these times. A round that is late because the previous round took too
	// long begins after Gap.
	Ticks bool
	// Gap is the minimum pause between two rounds. It applies even after a call to Wake and even
	// when there is more to do.
	Gap time.Duration
	// ErrorPause, if set, replaces Interval after a round in which a step failed and no step had
	// more to do. Wake does not shorten it.
	ErrorPause time.Duration
	// Timeout limits each step. 0 means that the steps set their own deadlines.
	Timeout time.Duration
	// Failed is called with a step's error, unless the loop is being stopped. It is nil if the
	// steps log their own errors.
	Failed func(ctx context.Context, err error)
	// Watchdog records when each step begins and when the round ends. It may be nil.
	Watchdog *Watchdog
}

// Loop repeats work in the background. The first round begins immediately, and each later round
// begins after an interval or a Wake. It is safe for concurrent use.
type Loop struct {
	rules LoopRules
	wake  chan struct{} // holds an element after Wake

	mu      sync.Mutex
	stop    context.CancelFunc // nil before Start
	running sync.WaitGroup
}

// NewLoop returns a Loop that has not started.
func NewLoop(rules LoopRules) *Loop {
	if rules.Watchdog == nil {
		rules.Watchdog = &Watchdog{}
	}
	return &Loop{rules: rules, wake: make(chan struct{}, 1)}
}

// Start runs the loop in a goroutine that ends with Stop, not with ctx. It may be called only once,
// and must not be combined with Run.
func (l *Loop) Start(ctx context.Context, steps ...Step) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop = stop
	l.running.Go(func() { l.Run(ctx, steps...) })
}

// Stop cancels the running step and waits until it returns. If ctx ends first, Stop returns ctx's
// error. Before Start, Stop does nothing.
func (l *Loop) Stop(ctx context.Context) error {
	l.mu.Lock()
	stop := l.stop
	l.mu.Unlock()
	if stop == nil {
		return nil
	}
	stop()
	return Wait(ctx, &l.running)
}

// Wake makes the next round begin without waiting for the interval. It never blocks. Several calls
// before that round count as one. A call during a round requests another round.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run repeats rounds until ctx ends. A round calls every step in order, even if an earlier one
// failed.
func (l *Loop) Run(ctx context.Context, steps ...Step) {
	tick := time.NewTicker(l.rules.Interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		more, failed := l.round(ctx, steps)
		if !l.rules.Ticks {
			tick.Reset(l.rules.Interval)
		}
		pause, wait := l.rules.Gap, !more
		if wait && failed && l.rules.ErrorPause > 0 {
			pause, wait = max(pause, l.rules.ErrorPause), false
		}
		if pause > 0 && clock.Sleep(ctx, pause) != nil {
			return
		}
		if !wait {
			continue
		}
		select {
		case <-tick.C:
		case <-l.wake:
		case <-ctx.Done():
		}
	}
}

func (l *Loop) round(ctx context.Context, steps []Step) (more, failed bool) {
	select {
	case <-l.wake: // this is the round that Wake requested
	default:
	}
	defer l.rules.Watchdog.End()
	for _, step := range steps {
		if ctx.Err() != nil {
			return false, false
		}
		l.rules.Watchdog.Begin()
		again, err := l.call(ctx, step)
		more, failed = more || again && err == nil, failed || err != nil
	}
	return more, failed
}

func (l *Loop) call(ctx context.Context, step Step) (more bool, err error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if l.rules.Timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, l.rules.Timeout)
	}
	defer cancel()
	more, err = step(limited)
	if err != nil && l.rules.Failed != nil && ctx.Err() == nil {
		l.rules.Failed(limited, err)
	}
	return more, err
}

// Wait waits until group is done. If ctx ends first, Wait returns ctx's error.
func Wait(ctx context.Context, group *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
