package redis

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestTake(t *testing.T) {
	t.Parallel()
	_, c := serve(t)
	for _, step := range []struct{ ask, want int }{{4, 4}, {4, 4}, {4, 2}, {1, 0}} {
		got, wait, err := c.Take(t.Context(), "slow", 10, time.Hour, step.ask)
		if err != nil || got != step.want || (wait > 0) != (got < step.ask) || wait > 6*time.Minute {
			t.Fatalf("asked for %d, got %d, %s until the next: %v", step.ask, got, wait, err)
		}
	}
	if got, _, err := c.Take(t.Context(), "other", 1, time.Hour, 5); err != nil || got != 1 {
		t.Fatalf("another rate gives %d: %v", got, err)
	}
	if got, wait, err := c.Take(t.Context(), "fast", 1, 50*time.Millisecond, 1); err != nil || got != 1 || wait != 0 {
		t.Fatalf("%d, %s: %v", got, wait, err)
	}
	eventually(t, "one more after its time", func() bool {
		got, _, err := c.Take(t.Context(), "fast", 1, 50*time.Millisecond, 1)
		return err == nil && got == 1
	})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.Take(over, "slow", 10, time.Hour, 1); err == nil {
		t.Fatal("no error without an answer")
	}
}

// The clock of Redis may be put back, or that of the replica that took over may be behind.
func TestTake_RefusesATimeThatTheRateCannotHave(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{
		"ten minutes": 10 * time.Minute,
		"a century":   100 * 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, c := serve(t)
			now := time.Now()
			server.SetTime(now.Add(ahead))
			if got, _, err := c.Take(t.Context(), "x", 60, time.Minute, 60); err != nil || got != 60 {
				t.Fatalf("got %d of a full bucket: %v", got, err)
			}
			server.SetTime(now)
			if got, wait, err := c.Take(t.Context(), "x", 60, time.Minute, 1); err == nil || got != 0 || wait != 0 || !strings.Contains(err.Error(), "rate:crier:rate:x") {
				t.Errorf("got %d, %s until the next, %v; want an error that names the key", got, wait, err)
			}
			server.SetTime(now.Add(ahead + time.Minute))
			if got, _, err := c.Take(t.Context(), "x", 60, time.Minute, 1); err != nil || got != 1 {
				t.Errorf("got %d once the time has come: %v", got, err)
			}
		})
	}
	// As a time.Duration this overflows; real Redis converts inf and 9e18 alike, miniredis knows neither.
	const overflow = "9000000000000000000"
	server, c := serve(t)
	if err := server.Set("rate:crier:rate:x", overflow); err != nil {
		t.Fatal(err)
	}
	if got, wait, err := c.Take(t.Context(), "x", 60, time.Minute, 1); err == nil || !strings.Contains(err.Error(), "rate:crier:rate:x") {
		t.Errorf("got %d, %s until the next, %v; want an error that names the key", got, wait, err)
	}
}
