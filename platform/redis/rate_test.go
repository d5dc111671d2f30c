package redis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestTake(t *testing.T) {
	t.Parallel()
	_, c := serve(t)
	for _, step := range []struct{ ask, want int }{{ask: 4, want: 4}, {ask: 4, want: 4}, {ask: 4, want: 2}, {ask: 1, want: 0}} {
		got, wait, err := c.Take(t.Context(), "slow", 10, time.Hour, step.ask)
		if err != nil || got != step.want || (wait > 0) != (got < step.ask) || wait > 6*time.Minute {
			t.Fatalf("taking %d: got %d, %s until the next, %v; want %d", step.ask, got, wait, err, step.want)
		}
	}
	if got, _, err := c.Take(t.Context(), "other", 1, time.Hour, 5); err != nil || got != 1 {
		t.Fatalf("another rate: got %d, %v, want 1", got, err)
	}
	if got, wait, err := c.Take(t.Context(), "fast", 1, 50*time.Millisecond, 1); err != nil || got != 1 || wait != 0 {
		t.Fatalf("got %d, %s until the next, %v; want 1 and no wait", got, wait, err)
	}
	eventually(t, "the bucket has refilled", func() bool {
		got, _, err := c.Take(t.Context(), "fast", 1, 50*time.Millisecond, 1)
		return err == nil && got == 1
	})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.Take(over, "slow", 10, time.Hour, 1); err == nil {
		t.Fatal("with a cancelled context: got no error, want one")
	}
}

// The clock of Redis may be set back, or the clock of a replica that took over may be behind.
func TestTake_RefusesWaitLongerThanPeriod(t *testing.T) {
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
				t.Fatalf("taking a full bucket: got %d, %v, want 60", got, err)
			}
			server.SetTime(now)
			if got, wait, err := c.Take(t.Context(), "x", 60, time.Minute, 1); got != 0 || wait != 0 || !strings.Contains(fmt.Sprint(err), "rate:crier:rate:x") {
				t.Errorf("got %d, %s until the next, %v; want an error that names the key", got, wait, err)
			}
			server.SetTime(now.Add(ahead + time.Minute))
			if got, _, err := c.Take(t.Context(), "x", 60, time.Minute, 1); err != nil || got != 1 {
				t.Errorf("after the clock has caught up: got %d, %v, want 1", got, err)
			}
		})
	}
	// This overflows a time.Duration. Redis converts inf and 9e18 the same way; miniredis supports
	// neither.
	const overflow = "9000000000000000000"
	server, c := serve(t)
	if err := server.Set("rate:crier:rate:x", overflow); err != nil {
		t.Fatal(err)
	}
	if got, wait, err := c.Take(t.Context(), "x", 60, time.Minute, 1); !strings.Contains(fmt.Sprint(err), "rate:crier:rate:x") {
		t.Errorf("got %d, %s until the next, %v; want an error that names the key", got, wait, err)
	}
}
