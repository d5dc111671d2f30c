package pds

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// send gives status and body; each call has a connection of its own.
func send(req *http.Request) (int, []byte, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, body, err
}

type result struct {
	status int
	body   string
	err    error
}

// upper answers 201 with the body in upper case, and counts its calls.
func upper(t *testing.T) (url string, calls *atomic.Int64) {
	t.Helper()
	calls = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		calls.Add(1)
		w.Header().Set("X-Path", r.URL.RequestURI())
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, strings.ToUpper(string(body)))
	}))
	t.Cleanup(s.Close)
	return s.URL, calls
}

func begin(ctx context.Context, t *testing.T, p *Proxy, method, body string) <-chan result {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/xrpc/"+method, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan result, 1)
	go func() {
		status, text, err := send(req)
		done <- result{status, string(text), err}
	}()
	return done
}

func answered(t *testing.T, done <-chan result, body string) {
	t.Helper()
	if r := <-done; r.err != nil || r.status != http.StatusCreated || r.body != body {
		t.Fatalf("%+v, want 201 %s", r, body)
	}
}

func failed(t *testing.T, done <-chan result) {
	t.Helper()
	if r := <-done; r.err == nil {
		t.Fatalf("answered: %+v", r)
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer bool // HoldAnswer, else HoldRequest
		end    func(t *testing.T, h *Hold, kill func())
		works  bool  // the client gets its answer
		calls  int64 // that the server saw, held call only
	}{
		{"a released request is carried out", false, func(_ *testing.T, h *Hold, _ func()) { h.Release() }, true, 1},
		{"a dropped request never reaches the server", false, func(_ *testing.T, h *Hold, _ func()) { h.Drop(); h.Release() }, false, 0},
		{"a request whose client died is not forwarded", false, func(_ *testing.T, h *Hold, kill func()) { kill(); <-h.Lost(); h.Release() }, false, 0},
		{"a released answer arrives whole", true, func(_ *testing.T, h *Hold, _ func()) { h.Release() }, true, 1},
		{"a dropped answer leaves the deed done", true, func(_ *testing.T, h *Hold, _ func()) { h.Drop() }, false, 1},
		{"a client that died does not undo the deed", true, func(_ *testing.T, h *Hold, kill func()) { kill(); <-h.Lost() }, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			target, calls := upper(t)
			p := StartProxy(t, target)
			answered(t, begin(t.Context(), t, p, "a.b", "before"), "BEFORE")
			hold := p.HoldRequest
			if c.answer {
				hold = p.HoldAnswer
			}
			h := hold("a.b")
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			done := begin(ctx, t, p, "a.b", "held")
			<-h.Reached()
			answered(t, begin(t.Context(), t, p, "a.b", "next"), "NEXT")
			answered(t, begin(t.Context(), t, p, "c.d", "other"), "OTHER")
			select {
			case r := <-done:
				t.Fatalf("not held: %+v", r)
			default:
			}
			c.end(t, h, kill)
			if c.works {
				answered(t, done, "HELD")
			} else {
				failed(t, done)
			}
			if got := calls.Load(); got != 3+c.calls {
				t.Fatalf("the server saw %d calls, want %d", got, 3+c.calls)
			}
			if p.Arrived("a.b") != 3 || p.Arrived("c.d") != 1 || p.Forwarded("a.b") != int(2+c.calls) {
				t.Fatalf("arrived %v, forwarded %d", p.Total(), p.Forwarded("a.b"))
			}
		})
	}
}

func TestProxyPassesHeadersAndQuery(t *testing.T) {
	t.Parallel()
	target, _ := upper(t)
	p := StartProxy(t, target)
	for _, hold := range []func(string) *Hold{nil, p.HoldRequest, p.HoldAnswer} {
		if hold != nil {
			hold("a.b").Release()
		}
		res, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+"/xrpc/a.b?x=1&y=%20", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(res)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got := answer.Header.Get("X-Path"); got != "/xrpc/a.b?x=1&y=%20" || answer.StatusCode != http.StatusCreated {
			t.Fatalf("%d %q", answer.StatusCode, got)
		}
	}
}

func TestProxyEndsWithACallHeld(t *testing.T) {
	t.Parallel()
	var done <-chan result
	target, calls := upper(t)
	t.Run("held", func(t *testing.T) {
		p := StartProxy(t, target)
		h := p.HoldRequest("a.b")
		done = begin(context.WithoutCancel(t.Context()), t, p, "a.b", "held")
		<-h.Reached()
	})
	failed(t, done)
	if calls.Load() != 0 {
		t.Fatal("forwarded at the end of the test")
	}
}
