package nostr

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"crier/publishing/connector"
	"crier/tests/relay"
)

// slow answers its own name after its time, or "late" when it was cut off.
func slow(times map[string]time.Duration) func(context.Context, string) string {
	return func(ctx context.Context, url string) string {
		select {
		case <-time.After(times[url]):
			return url
		case <-ctx.Done():
			return "late"
		}
	}
}

func TestAskWaitsNoLongerThanNeeded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		a, b   time.Duration
		enough string
		want   []string
	}{
		"both in time":                                {time.Second, 2 * time.Second, "a", []string{"a", "b"}},
		"the other in its grace":                      {time.Second, time.Second + grace - 1, "a", []string{"a", "b"}},
		"the other beyond its grace":                  {time.Second, time.Second + grace + 1, "a", []string{"a", "late"}},
		"an answer that is not enough gives no hurry": {time.Second, 2 * grace, "b", []string{"a", "b"}},
		"nobody waits for ever":                       {patience + 1, time.Hour, "a", []string{"late", "late"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				one := slow(map[string]time.Duration{"a": tc.a, "b": tc.b})
				got := ask(t.Context(), []string{"a", "b"}, one, func(s string) bool { return s == tc.enough })
				if !slices.Equal(got, tc.want) {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			})
		})
	}
}

func TestDeafRelayProvesNothing(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	s := session(t, r)
	it := prepared(t, s, item("hello"))
	r.Deafen(true)
	wantOutcome(t, s, it, connector.CannotTell)
}
