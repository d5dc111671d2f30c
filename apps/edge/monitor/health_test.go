package monitor_test

import (
	"strings"
	"testing"

	"crier/tests/edgetest"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	edgetest.Want(t, s.Call(t, "GET", "/health", ""), 200, `{"status":"ok","version":"test","checks":{"postgres":"ok"}}`)
	s.Unhealthy.Store(true)
	edgetest.Want(t, s.Call(t, "GET", "/health", ""), 503, `"status":"unavailable"`, `"postgres":"failing"`)
	s.Unhealthy.Store(false)
	s.Drain()
	edgetest.Want(t, s.Call(t, "GET", "/health", ""), 503, `"status":"draining"`)
	if log := s.Log.String(); strings.Contains(log, "level=ERROR") || strings.Count(log, "level=WARN") != 2 {
		t.Errorf("got the log\n%swant two warnings and no error", log)
	}
}
