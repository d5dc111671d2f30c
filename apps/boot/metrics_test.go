package boot

import (
	"net/http"
	"strings"
	"testing"

	"crier/platform/pg"
	"crier/tests/call"
)

// TestMonitor_NeedsNoConnectionOfScheduler first takes all connections of the scheduler's pool.
func TestMonitor_NeedsNoConnectionOfScheduler(t *testing.T) {
	t.Parallel()
	s := serveWith(t, map[string]string{"METRICS_LISTEN": "127.0.0.1:0", "REQUEST_TIMEOUT": "5s"})
	pool := s.db.Pool(pg.Clock)
	for range pool.Config().MaxConns {
		c, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	a, err := call.Do(t.Context(), client, http.MethodGet, "http://"+s.PrivateAddr()+"/monitor/queue/publish", nil)
	if err != nil || a.Status != http.StatusOK || !strings.Contains(a.Body, `"status":"success"`) {
		t.Errorf("got %v, %v, want 200 with the status success", a, err)
	}
	if n := s.queueDB.Pool(pg.Clock).Config().MaxConns; n != 1 {
		t.Errorf("the statistics have a pool of %d connections, want 1", n)
	}
}
