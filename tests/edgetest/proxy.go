package edgetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"crier/apps/edge"
)

// Home is the client address from which Ada signs in.
const Home = "203.0.113.9"

// BehindProxy is a Service that trusts the addresses in X-Forwarded-For and has a clock that the
// test sets.
type BehindProxy struct {
	*Service
	*Clock
}

// NewBehindProxy serves an edge behind a proxy until the test ends. Each change may replace its
// ports.
func NewBehindProxy(t *testing.T, change ...func(*edge.Deps)) BehindProxy {
	t.Helper()
	c := NewClock()
	s := New(
		t, map[string]string{"TRUSTED_PROXIES": "127.0.0.1"}, append(change, func(d *edge.Deps) { d.Clock = c })...,
	)
	return BehindProxy{Service: s, Clock: c}
}

// TryLogin logs in from an address and fails the test unless it gets want. want is the status or,
// for a 429, the number of seconds to wait.
func (s *Service) TryLogin(t *testing.T, from, email, password string, want int) {
	t.Helper()
	a := s.Call(
		t, "POST", "/auth/login", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password),
		"Content-Type", "application/json", "X-Forwarded-For", from,
	)
	got := a.Status
	if a.Status == 429 {
		got = Decode[struct{ RetryAfter int }](t, a).RetryAfter
		if a.Header.Get("Retry-After") != fmt.Sprint(got) {
			t.Errorf("Retry-After is %q, want %d as in the body", a.Header.Get("Retry-After"), got)
		}
	}
	if got != want {
		t.Fatalf("%s of %s from %s: got %d, want %d: %s", password, email, from, got, want, a.Body)
	}
}

// Clock is a clock that the test sets. It starts at Day.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows Day.
func NewClock() *Clock { return &Clock{now: Day} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Forward moves the clock forward.
func (c *Clock) Forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
