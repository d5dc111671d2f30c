// Package lifecycle starts the parts of a process in order and stops them in reverse order, each
// within its own deadline. Loop repeats background work.
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
	grace          = 500 * time.Millisecond // how long Stop may run after its context ends
)

// Part is something a process starts and stops, such as a server or a pool.
type Part struct {
	// Name identifies the part in errors and logs.
	Name string
	// Start returns once the part is running. The context applies only to starting, not to the
	// part's lifetime. Start may be nil.
	Start func(ctx context.Context) error
	// Stop is called at most once, and only if Start succeeded or is nil. Stop may be nil.
	Stop func(ctx context.Context) error
	// Timeout limits Stop; 0 means 5 s. After that time, the Group continues even if Stop has not
	// returned.
	Timeout time.Duration
}

// Group starts and stops parts. It is safe for concurrent use: calls to Start and Stop wait for
// each other.
type Group struct {
	log    *slog.Logger
	failed chan struct{}

	mu      sync.Mutex // held while parts start or stop, so that Stop waits for a running Start
	started []Part
	stopped bool
	stopErr error

	failOnce sync.Once
	failErr  error
}

// New returns an empty Group. log may be nil.
func New(log *slog.Logger) *Group {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Group{log: log, failed: make(chan struct{})}
}

// Start starts the parts in order. If a part fails to start, Start returns the error and starts no
// further part. Start also fails if ctx has ended or Stop was called. Parts that have started run
// until Stop is called. Start may be called again with more parts.
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

// Fail reports that a running part has failed, so that Wait returns. Only the first call has an
// effect.
func (g *Group) Fail(err error) {
	g.failOnce.Do(func() {
		g.failErr = err
		close(g.failed)
	})
}

// Wait blocks until ctx ends or Fail is called. It returns nil if ctx ended, and otherwise the
// error from the first call to Fail.
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

// Stop stops the parts that have started, in reverse order, and returns their joined errors. Each
// part gets its Timeout or the time left until ctx's deadline, whichever is shorter, but at least
// half a second. A second call waits for the first and returns the same error.
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

// stop calls p.Stop and waits for it. It waits no longer than the limit plus grace, because some
// libraries' Close methods have no deadline.
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
	case err := <-done:
		return err
	case <-time.After(grace):
		return fmt.Errorf("not done in %s: %w", limit, ctx.Err())
	}
}
