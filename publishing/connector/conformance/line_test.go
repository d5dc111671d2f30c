package conformance

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"crier/platform/outbound"
)

// The suite relies on which faults reach the platform and on what the connector gets back.
func TestLine_FaultsOfCommit(t *testing.T) {
	t.Parallel()
	for fault, want := range map[Fault]struct {
		arrived int32
		status  int  // 0 if there is no response
		written bool // SendError.Written
	}{
		"":            {arrived: 1, status: 200, written: false},
		RefuseDial:    {arrived: 0, status: 0, written: false},
		LoseRequest:   {arrived: 0, status: 0, written: true},
		DropAnswer:    {arrived: 1, status: 0, written: true},
		CutAnswer:     {arrived: 1, status: 0, written: true},
		RateLimit:     {arrived: 0, status: 429, written: false},
		RateLimitBare: {arrived: 0, status: 429, written: false},
		ErrorBefore:   {arrived: 0, status: 500, written: false},
		ErrorAfter:    {arrived: 1, status: 500, written: false},
		Expired:       {arrived: 0, status: 401, written: false},
		Replaced:      {arrived: 0, status: 404, written: false},
	} {
		t.Run("fault "+string(fault)+" strikes once", func(t *testing.T) {
			t.Parallel()
			var arrived atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				arrived.Add(1)
				_, _ = w.Write([]byte(`{"ok":true}`))
			}))
			t.Cleanup(server.Close)
			line := NewLine(t, server.Listener.Addr().String())
			line.Arm(t, fault)
			status, err := send(t, line.Commit, server.URL)
			var sent *outbound.SendError
			if errors.As(err, &sent) != (want.status == 0) || sent != nil && sent.Written != want.written {
				t.Errorf("got %v, want a SendError: %v with Written %v", err, want.status == 0, want.written)
			}
			if err == nil && status != want.status || arrived.Load() != want.arrived {
				t.Errorf("got status %d and %d requests arrived, want %d and %d", status, arrived.Load(), want.status, want.arrived)
			}
			if status, err := send(t, line.Commit, server.URL); err != nil || status != 200 {
				t.Errorf("the next commit: got %d, %v, want 200", status, err)
			}
			if got := line.counted(); got.commits != 2 || got.writes != 0 {
				t.Errorf("counted %+v, want 2 commits and no writes", got)
			}
		})
	}
}

func TestLine_FaultsOfOtherCalls(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	line := NewLine(t, server.Listener.Addr().String())
	line.failCalls(RefuseDial, maxSteps)
	for range 3 {
		if _, err := send(t, line.Do, server.URL); err == nil {
			t.Fatal("Do succeeds with a fault")
		}
	}
	if _, err := line.Websocket(t.Context(), server.URL); err == nil {
		t.Error("Websocket succeeds with a fault")
	}
	if status, err := send(t, line.Commit, server.URL); err != nil || status != 200 {
		t.Errorf("a commit, which has faults of its own: got %d, %v, want 200", status, err)
	}
	line.failCalls("", 0)
	if status, err := send(t, line.Do, server.URL); err != nil || status != 200 {
		t.Errorf("without a fault: got %d, %v, want 200", status, err)
	}
	if got, want := line.counted(), (tally{commits: 1, writes: 4, faulted: 4}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func send(t *testing.T, through func(*http.Request) (*http.Response, error), address string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := through(req)
	if err != nil {
		return 0, err
	}
	_, err = outbound.ReadAll(resp, maxAnswer)
	return resp.StatusCode, err
}

func TestStore_KeepsNumbersAndRefusesLargeHandles(t *testing.T) {
	t.Parallel()
	got, err := store([]byte(`{"b": 9007199254740993, "a": [1]}`))
	if err != nil || string(got) != `{"a":[1],"b":9007199254740993}` {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := store([]byte(`"` + strings.Repeat("x", maxHandle) + `"`)); err == nil {
		t.Error("a handle over the limit is stored")
	}
	if _, err := store([]byte(`{`)); err == nil {
		t.Error("a handle that is not JSON is stored")
	}
}
