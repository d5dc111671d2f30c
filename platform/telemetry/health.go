package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
)

// OK is the result of a check that passed. Degraded is the prefix of the result of a check that
// failed and was added with AddDegraded.
const (
	OK       = "ok"
	Degraded = "degraded: "
)

// checkInterval is the time between two runs of a check. firstRun is how long Start waits for the
// first results.
const (
	checkInterval = 5 * time.Second
	firstRun      = 5 * time.Second
)

// Health runs named checks in the background and keeps their latest results. Check returns these
// results without waiting, so health requests put no load on dependencies. Health also records
// whether the process is ready for requests. It is safe for concurrent use.
type Health struct {
	log     *slog.Logger
	timeout time.Duration
	ready   atomic.Bool

	mu      sync.Mutex
	checks  map[string]*check
	started bool
	stop    chan struct{} // closed by Stop
	ended   sync.Once
}

// check is a named check and its latest result. Health.mu protects running, text and at.
type check struct {
	name     string
	run      func(context.Context) error
	degraded bool // added by AddDegraded
	running  bool // the last run has not returned yet

	text string // the latest result; "" before the first
	at   time.Time
}

// NewHealth returns a Health that has no checks and is not ready. timeout limits each run of a
// check. A nil log discards messages.
func NewHealth(timeout time.Duration, log *slog.Logger) *Health {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Health{log: log, timeout: timeout, checks: map[string]*check{}, stop: make(chan struct{})}
}

// Add adds a check whose failure makes the service unhealthy. It replaces any check with the same
// name.
func (h *Health) Add(name string, run func(context.Context) error) {
	h.add(&check{name: name, run: run})
}

// AddDegraded adds a check whose failure is reported but leaves the service healthy. It replaces
// any check with the same name.
func (h *Health) AddDegraded(name string, run func(context.Context) error) {
	h.add(&check{name: name, run: run, degraded: true})
}

func (h *Health) add(c *check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks[c.name] = c
}

// Age returns a check that measures the age of the time returned by last, such as a loop's last
// heartbeat. The check fails if the age exceeds most. last must not block.
func Age(last func() time.Time, most time.Duration) func(context.Context) error {
	return func(context.Context) error {
		age := clock.System{}.Now().Sub(last())
		if age <= most {
			return nil
		}
		words := fmt.Sprintf("The last sign of life was %s ago.", age.Round(time.Second))
		return fault.New(fault.Unavailable, "telemetry.Age", words)
	}
}

// SetReady sets whether the process accepts requests. Call it with true once all parts are running,
// and with false when the process begins to drain.
func (h *Health) SetReady(ready bool) { h.ready.Store(ready) }

// Ready reports whether a load balancer may send requests to this process.
func (h *Health) Ready() bool { return h.ready.Load() }

// Start starts running the checks. They run until Stop is called. Start waits for the first results
// of checks added with Add, for at most five seconds or until ctx ends. Further calls do nothing.
func (h *Health) Start(ctx context.Context) {
	h.mu.Lock()
	started := h.started
	h.started = true
	h.mu.Unlock()
	if started {
		return
	}
	first := make(chan struct{})
	go h.loop(first)
	wait := time.NewTimer(firstRun)
	defer wait.Stop()
	select {
	case <-first:
	case <-wait.C:
	case <-ctx.Done():
	}
}

// Stop ends the checks. After that, Check keeps returning the latest results until they are too
// old, and then returns failures.
func (h *Health) Stop() { h.ended.Do(func() { close(h.stop) }) }

func (h *Health) loop(first chan struct{}) {
	for _, r := range h.startChecks() {
		if !r.degraded {
			<-r.done
		}
	}
	close(first)
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-tick.C:
			h.startChecks()
		}
	}
}

// Refresh runs every check once and waits for the results, but no longer than the timeout passed to
// NewHealth. It skips checks that are already running. It is meant for tests.
func (h *Health) Refresh() {
	for _, r := range h.startChecks() {
		<-r.done
	}
}

// run is one run of a check. done is closed once its result is stored.
type run struct {
	degraded bool
	done     chan struct{}
}

// startChecks starts every check that is not already running, each in a new goroutine. A check that
// never returns occupies one goroutine and fails by timing out.
func (h *Health) startChecks() (runs []run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.checks {
		if c.running {
			continue
		}
		c.running = true
		done := make(chan struct{})
		runs = append(runs, run{degraded: c.degraded, done: done})
		go func() {
			defer close(done)
			h.observe(c)
		}()
	}
	return runs
}

// observe runs a check and stores its result. It does not wait for a check that ignores its
// context.
func (h *Health) observe(c *check) {
	ctx, cancel := context.WithTimeout(context.Background(), h.timeout)
	defer cancel()
	result := make(chan error, 1)
	go func() {
		err := c.run(ctx)
		h.mu.Lock()
		c.running = false
		h.mu.Unlock()
		result <- err
	}()
	var err error
	select {
	case err = <-result:
	case <-ctx.Done():
		err = ctx.Err()
	}
	text := OK
	if err != nil {
		text = h.publicText(err)
	}
	h.mu.Lock()
	before := c.text
	c.text, c.at = text, clock.System{}.Now()
	h.mu.Unlock()
	switch {
	case text != OK && (before == OK || before == ""):
		h.log.Warn("health check failed", "check", c.name, "error", err)
	case text == OK && before != OK && before != "":
		h.log.Info("health check passes again", "check", c.name)
	}
}

// publicText returns a sentence about err that is safe to publish. For a fault with a message, it
// returns the message. It never returns the text of any other error.
func (h *Health) publicText(err error) string {
	var f *fault.Error
	switch {
	case errors.As(err, &f) && f.Message != "":
		return f.Message
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("No response within %s.", h.timeout)
	}
	return "Not reachable."
}

// Check returns the latest result of every check without waiting. A result is "ok" or a sentence
// that is safe to publish; causes are in the log. A check without a recent result counts as failed.
//
// healthy is false if a check added with Add failed. If a check added with AddDegraded failed, its
// result begins with "degraded: " and does not affect healthy.
func (h *Health) Check(context.Context) (answers map[string]string, healthy bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	answers, healthy = make(map[string]string, len(h.checks)), true
	now := clock.System{}.Now()
	for name, c := range h.checks {
		text := c.text
		if age := now.Sub(c.at); text == "" {
			text = "Not checked yet."
		} else if age > 2*h.timeout+3*checkInterval {
			text = fmt.Sprintf("Last checked %s ago.", age.Round(time.Second))
		}
		if text != OK && c.degraded {
			answers[name] = Degraded + text
			continue
		}
		answers[name] = text
		healthy = healthy && text == OK
	}
	return answers, healthy
}
