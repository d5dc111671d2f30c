package telemetry

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestHealth_FailedDegradedCheckLeavesServiceHealthy(t *testing.T) {
	t.Parallel()
	h := NewHealth(time.Second, nil)
	h.Add("postgres", func(context.Context) error { return nil })
	h.AddDegraded("redis", func(context.Context) error { return io.EOF })
	h.Refresh()
	answers, healthy := h.Check(t.Context())
	want := map[string]string{"postgres": "ok", "redis": "degraded: Not reachable."}
	if !maps.Equal(answers, want) || !healthy {
		t.Errorf("got %v, healthy %t, want %v, true", answers, healthy, want)
	}
	h.Add("postgres", func(context.Context) error { return io.EOF })
	h.Refresh()
	if answers, healthy := h.Check(t.Context()); healthy {
		t.Errorf("a failed required check: got %v as healthy, want a failure", answers)
	}
}

func TestCheck_RunsNoChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth(2*time.Second, nil)
		var runs atomic.Int64
		h.Add("counted", func(context.Context) error { runs.Add(1); return nil })
		h.Start(t.Context())
		defer h.Stop()
		for range 1000 {
			if answers, healthy := h.Check(t.Context()); !healthy {
				t.Fatalf("got the answers %v, want a healthy process", answers)
			}
		}
		if n := runs.Load(); n != 1 {
			t.Errorf("the check ran %d times for 1000 calls, want once", n)
		}
		time.Sleep(time.Minute + time.Millisecond)
		if n := runs.Load(); n != 13 {
			t.Errorf("the check ran %d times in a minute, want 13", n)
		}
	})
}

func TestHealth_OldResultFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth(2*time.Second, nil)
		h.Add("fine", func(context.Context) error { return nil })
		h.Start(t.Context())
		h.Stop() // the loop of checks ends, as after a fault
		time.Sleep(19 * time.Second)
		if answers, healthy := h.Check(t.Context()); !healthy {
			t.Errorf("after 19 seconds: got %v, want healthy", answers)
		}
		time.Sleep(time.Second)
		if answers, healthy := h.Check(t.Context()); healthy || answers["fine"] != "Last checked 20s ago." {
			t.Errorf("after 20 seconds: got %v, healthy %t, want a failure", answers, healthy)
		}
	})
}

func TestHealth_HangingCheckRunsOnceAndDelaysNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth(2*time.Second, nil)
		var runs atomic.Int64
		end := make(chan struct{})
		h.AddDegraded("hanging", func(context.Context) error { runs.Add(1); <-end; return nil })
		h.Add("fine", func(context.Context) error { return nil })
		h.Start(t.Context())
		time.Sleep(time.Minute)
		answers, healthy := h.Check(t.Context())
		if !healthy || answers["fine"] != OK || answers["hanging"] == OK || runs.Load() != 1 {
			t.Errorf("got %v, healthy %t and %d runs, want healthy and one run", answers, healthy, runs.Load())
		}
		close(end)
		time.Sleep(6 * time.Second)
		if answers, _ := h.Check(t.Context()); answers["hanging"] != OK {
			t.Errorf("after it returned: got %v, want ok", answers)
		}
		h.Stop()
	})
}

func TestAge_FailsAboveLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth(time.Second, nil)
		last := time.Now()
		h.Add("scheduler", Age(func() time.Time { return last }, 10*time.Second))
		time.Sleep(10 * time.Second)
		h.Refresh()
		if answers, healthy := h.Check(t.Context()); !healthy {
			t.Errorf("at the limit: got %v, want healthy", answers)
		}
		time.Sleep(3 * time.Second)
		h.Refresh()
		answers, healthy := h.Check(t.Context())
		if healthy || answers["scheduler"] != "The last sign of life was 13s ago." {
			t.Errorf("past the limit: got %v, healthy %t, want a failure", answers, healthy)
		}
	})
}

func TestListener_HealthIsUnavailableOnlyForRequiredChecks(t *testing.T) {
	t.Parallel()
	h := NewHealth(time.Second, nil)
	h.AddDegraded("redis", func(context.Context) error { return io.EOF })
	ask := func() int {
		h.Refresh()
		answer := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/health", nil)
		answerHealth(h, nil).ServeHTTP(answer, request)
		return answer.Code
	}
	if code := ask(); code != http.StatusOK {
		t.Errorf("with a degraded check: got %d, want 200", code)
	}
	h.Add("postgres", func(context.Context) error { return io.EOF })
	if code := ask(); code != http.StatusServiceUnavailable {
		t.Errorf("with a failed check: got %d, want 503", code)
	}
}
