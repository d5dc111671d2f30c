package redis

import (
	"context"
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
