package boot

import (
	"testing"
	"time"

	"crier/platform/clock"
	"crier/tests/faultnet"
)

func TestStart_WaitsForSlowDatabase(t *testing.T) {
	t.Parallel()
	tried := make(chan int, 1)
	s := serveWith(t, nil, func(a *App) {
		proxy, through := faultnet.Start(t, a.cfg.Postgres.URL)
		proxy.Set(faultnet.Hold)
		a.cfg.Postgres.URL = through + "&connect_timeout=1"
		go func() {
			for proxy.Accepted() < 2 && clock.Sleep(t.Context(), 10*time.Millisecond) == nil {
			}
			tried <- proxy.Accepted()
			proxy.Set(faultnet.Pass)
		}()
	})
	if n := <-tried; n < 2 {
		t.Errorf("the service connected to the database %d times, want more than once", n)
	}
	if a := s.get(t, "/health", ""); a.Status != 200 {
		t.Errorf("got %v, want a healthy service", a)
	}
}
