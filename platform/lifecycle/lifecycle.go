// Package lifecycle starts the parts of a process in order and stops them in reverse, each within its own deadline.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"crier/platform/clock"
)

const (
	defaultTimeout = 5 * time.Second
	grace          = 500 * time.Millisecond // to return after its context is over
)

// Part is something that runs. Start returns when the part works; its context is for starting only, not for the part's life.
// Stop is called once, only after a Start without error (a nil Start counts as one), and may be nil.
// Timeout bounds Stop, 0 means 5 s: when it is over the Group goes on, whether Stop listens to its context or not.
type Part struct {
	Name    string
	Start   func(ctx context.Context) error
	Stop    func(ctx context.Context) error
	Timeout time.Duration
}

// Group is a list of parts. It is safe for concurrent use.
type Group struct {
	log    *slog.Logger
	failed chan struct{}

	mu      sync.Mutex // held while parts start or stop: Stop waits for a Start that runs
	started []Part
	stopped bool
	stopErr error

	failOnce sync.Once
	failErr  error
}

// New makes an empty group; a nil log is silent.
func New(log *slog.Logger) *Group {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Group{log: log, failed: make(chan struct{})}
}

// Start starts parts in order and ends at the first error; what has started stays up until Stop. It may be called again with more parts.
func (g *Group) Start(ctx context.Context, parts ...Part) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range parts {
		if g.stopped {
			return fmt.Errorf("start %s: already stopped", p.Name)
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("start %s: %w", p.Name, err)
		}
		if p.Start != nil {
			if err := p.Start(ctx); err != nil {
				return fmt.Errorf("start %s: %w", p.Name, err)
			}
		}
		g.started = append(g.started, p)
		g.log.DebugContext(ctx, "started", "part", p.Name)
	}
	return nil
}

// Fail reports that a running part cannot go on. The first report wins.
func (g *Group) Fail(err error) {
	g.failOnce.Do(func() {
		g.failErr = err
		close(g.failed)
	})
}

// Wait returns nil when ctx is over, or the error of the first Fail.
func (g *Group) Wait(ctx context.Context) error {
	select {
	case <-g.failed:
		return g.failErr
	default:
	}
	select {
	case <-g.failed:
		return g.failErr
	case <-ctx.Done():
		return nil
	}
}

// Stop stops what started, in reverse, and joins the errors. A second call waits for the first and returns the same.
// Each part has its own time, or what is left of ctx's if that is less: after the end of ctx the rest is stopped all the same, with a moment each.
func (g *Group) Stop(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return g.stopErr
	}
	g.stopped = true
	var errs []error
	for _, p := range slices.Backward(g.started) {
		if err := stop(ctx, p); err != nil {
			g.log.ErrorContext(ctx, "stop failed", "part", p.Name, "error", err)
			errs = append(errs, fmt.Errorf("stop %s: %w", p.Name, err))
			continue
		}
		g.log.DebugContext(ctx, "stopped", "part", p.Name)
	}
	g.stopErr = errors.Join(errs...)
	return g.stopErr
}

// stop leaves a Stop behind that does not return in time: some close calls of libraries know no deadline.
func stop(ctx context.Context, p Part) error {
	if p.Stop == nil {
		return nil
	}
	limit := p.Timeout
	if limit <= 0 {
		limit = defaultTimeout
	}
	if end, ok := ctx.Deadline(); ok {
		limit = max(grace, min(limit, end.Sub(clock.System{}.Now())))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.Stop(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done: // it listened to its context
		return err
	case <-time.After(grace):
		return fmt.Errorf("not done in %s: %w", limit, ctx.Err())
	}
}
