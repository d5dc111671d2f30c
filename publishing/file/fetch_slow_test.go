package file

import (
	"testing"
	"time"
)

// A server that sends a byte now and then cannot keep a download open until its time limit.
func TestFetch_EndsSlowServers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		waited time.Duration
		bytes  int64
		slow   bool
	}{
		{waited: silence, bytes: 0, slow: false}, {waited: silence + time.Second, bytes: 15, slow: true},
		{waited: time.Minute, bytes: 60*minRate - 1, slow: true}, {waited: time.Minute, bytes: 60 * minRate, slow: false},
	} {
		if got := isTooSlow(c.waited, c.bytes); got != c.slow {
			t.Errorf("%d bytes in %s: got slow %t, want %t", c.bytes, c.waited, got, c.slow)
		}
	}
}
