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

// OK is what a check that passed says, and Degraded is how the answer of a check begins that failed and that the
// service can do without.
const (
	OK       = "ok"
	Degraded = "degraded: "
)

// How often checks run, and how long they may wait for their first run.
const (
	checkInterval = 5 * time.Second
	firstRun      = 5 * time.Second
)

// Health runs named checks in the background and keeps their last results, so that asking for them costs nothing and
// waits for nothing: many health requests are no load on what is checked. It also knows whether the process takes work.
// It is safe for concurrent use.
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

// check is one named check and how it went.
type check struct {
	name     string
	run      func(context.Context) error
	degraded bool // the service goes on without it
	running  bool // an earlier run has not returned

	text string // of the last result; "" before the first
	at   time.Time
}

// NewHealth gives each run of a check this much time. It starts not ready. A nil log is silent.
func NewHealth(timeout time.Duration, log *slog.Logger) *Health {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Health{log: log, timeout: timeout, checks: map[string]*check{}, stop: make(chan struct{})}
}

// Add names a check that the service cannot do without; the same name again replaces it.
func (h *Health) Add(name string, run func(context.Context) error) {
	h.add(&check{name: name, run: run})
}

// AddDegraded names a check whose failure is told, while the service stays healthy; the same name again replaces it.
func (h *Health) AddDegraded(name string, run func(context.Context) error) {
	h.add(&check{name: name, run: run, degraded: true})
}

func (h *Health) add(c *check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks[c.name] = c
}

// Age is a check that fails when last is longer ago than most, such as the last heartbeat of a loop. last must not
// wait.
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

// SetReady is true once all parts run and false from the moment of draining.
func (h *Health) SetReady(ready bool) { h.ready.Store(ready) }

// Ready tells a load balancer whether to send requests here.
func (h *Health) Ready() bool { return h.ready.Load() }

// Start runs every check, waits for the first results of those that the service cannot do without, until ctx is over or
// for five seconds, and keeps the checks running until Stop.
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

// Stop ends the checks; the last results stay until they are too old.
func (h *Health) Stop() { h.ended.Do(func() { close(h.stop) }) }

func (h *Health) loop(first chan struct{}) {
	for _, r := range h.begin() {
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
			h.begin()
		}
	}
}

// Refresh runs every check once and waits for the results, each within the time of NewHealth.
func (h *Health) Refresh() {
	for _, r := range h.begin() {
		<-r.done
	}
}

// run is a run of a check; done is closed when its result is there.
type run struct {
	degraded bool
	done     chan struct{}
}

// begin runs each check that is not running, in a goroutine of its own. A check that never returns keeps one goroutine,
// and its result becomes that it gave no answer.
func (h *Health) begin() (runs []run) {
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

// observe runs a check and keeps its result. It does not wait for a check that ignores its context.
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
		text = h.words(err)
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

// words is a sentence about an error that is safe for everybody.
func (h *Health) words(err error) string {
	var f *fault.Error
	switch {
	case errors.As(err, &f) && f.Message != "":
		return f.Message
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("No answer within %s.", h.timeout)
	}
	return "Not reachable."
}

// Check returns the last result of every check: "ok", or a sentence that is safe for everybody; causes are in the log.
// healthy is true when all are ok but those of AddDegraded, whose sentence begins with "degraded: ". A check without a
// recent result has failed. It waits for nothing.
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
