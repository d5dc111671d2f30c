package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"crier/platform/fault"
)

// OK is what a check that passed says.
const OK = "ok"

// Health holds named checks and whether the process takes work. It is safe for concurrent use.
type Health struct {
	log     *slog.Logger
	timeout time.Duration
	ready   atomic.Bool

	mu     sync.Mutex
	checks map[string]func(context.Context) error
}

// NewHealth gives each check this much time. It starts not ready. A nil log is silent.
func NewHealth(timeout time.Duration, log *slog.Logger) *Health {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Health{log: log, timeout: timeout, checks: map[string]func(context.Context) error{}}
}

// Add names a check; the same name again replaces it.
func (h *Health) Add(name string, check func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks[name] = check
}

// SetReady is true once all parts run and false from the moment of draining.
func (h *Health) SetReady(ready bool) { h.ready.Store(ready) }

// Ready tells a load balancer whether to send requests here.
func (h *Health) Ready() bool { return h.ready.Load() }

// Check runs all checks at once. Each name gets "ok" or a sentence that is safe for everybody; causes go to the log. healthy is true when all are ok.
func (h *Health) Check(ctx context.Context) (answers map[string]string, healthy bool) {
	h.mu.Lock()
	answers, healthy = make(map[string]string, len(h.checks)), true
	type answer struct{ name, text string }
	results := make(chan answer, len(h.checks))
	for name, check := range h.checks {
		go func() { results <- answer{name, h.run(ctx, name, check)} }()
	}
	n := len(h.checks)
	h.mu.Unlock()
	for range n {
		a := <-results
		answers[a.name] = a.text
		healthy = healthy && a.text == OK
	}
	return answers, healthy
}

// run does not wait for a check that ignores its context.
func (h *Health) run(ctx context.Context, name string, check func(context.Context) error) string {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- check(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		return OK
	}
	h.log.WarnContext(ctx, "health check failed", "check", name, "error", err)
	var f *fault.Error
	switch {
	case errors.As(err, &f) && f.Message != "":
		return f.Message
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("No answer within %s.", h.timeout)
	}
	return "Not reachable."
}
