package faultnet

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

type result struct {
	status int
	body   string
	err    error
}

// upper returns the URL of a server that responds with 201 and the body in upper case, and its
// number of calls.
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

func begin(ctx context.Context, t *testing.T, p *HTTP, path, body string) <-chan result {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan result, 1)
	go func() {
		answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			done <- result{err: err}
			return
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		done <- result{status: answer.StatusCode, body: string(text), err: err}
	}()
	return done
}

func answered(t *testing.T, done <-chan result, body string) {
	t.Helper()
	if r := <-done; r.err != nil || r.status != http.StatusCreated || r.body != body {
		t.Fatalf("got %+v, want 201 %s", r, body)
	}
}

func failed(t *testing.T, done <-chan result) {
	t.Helper()
	if r := <-done; r.err == nil {
		t.Fatalf("got %+v, want an error", r)
	}
}

func TestHTTP_Hold(t *testing.T) {
	t.Parallel()
	release := func(h *Held, _ func()) { h.Release() }
	for name, c := range map[string]struct {
		at    Point
		end   func(h *Held, kill func())
		works bool  // the client receives the response
		calls int64 // number of held calls that the server received
	}{
		"a released request is handled":               {at: Request, end: release, works: true, calls: 1},
		"a dropped request never reaches the server":  {at: Request, end: func(h *Held, _ func()) { h.Drop(); h.Release() }},
		"a request of a lost client is not forwarded": {at: Request, end: func(h *Held, kill func()) { kill(); <-h.Lost; h.Release() }},
		"a late request of a lost client is handled":  {at: Late, end: func(h *Held, kill func()) { kill(); h.Release() }, calls: 1},
		"a late request can be dropped":               {at: Late, end: func(h *Held, _ func()) { h.Drop() }},
		"a released answer arrives whole":             {at: Answer, end: release, works: true, calls: 1},
		"a dropped answer is of a handled call":       {at: Answer, end: func(h *Held, _ func()) { h.Drop() }, calls: 1},
		"a lost client does not stop the call":        {at: Answer, end: func(h *Held, kill func()) { kill(); <-h.Lost }, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, calls := upper(t)
			p := StartHTTP(t, target)
			answered(t, begin(t.Context(), t, p, "/held", "before"), "BEFORE")
			h := p.Hold("POST /held", c.at)
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			done := begin(ctx, t, p, "/held", "held")
			<-h.Reached
			answered(t, begin(t.Context(), t, p, "/held", "next"), "NEXT")
			answered(t, begin(t.Context(), t, p, "/other", "other"), "OTHER")
			select {
			case r := <-done:
				t.Fatalf("got %+v, want the call to be held", r)
			default:
			}
			c.end(h, kill)
			if c.works {
				answered(t, done, "HELD")
			} else {
				failed(t, done)
			}
			<-h.Done
			if got := calls.Load(); got != 3+c.calls || p.Forwarded("POST /held") != int(2+c.calls) {
				t.Fatalf("got %d calls, want %d; %d held ones were forwarded", got, 3+c.calls, p.Forwarded("POST /held"))
			}
		})
	}
}

func TestHTTP_PassesHeadersAndQuery(t *testing.T) {
	t.Parallel()
	target, _ := upper(t)
	p := StartHTTP(t, target)
	for _, at := range []Point{-1, Request, Late, Answer} {
		if at >= 0 {
			p.Hold("GET /held", at).Release()
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+"/held?x=1&y=%20", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got := answer.Header.Get("X-Path"); got != "/held?x=1&y=%20" || answer.StatusCode != http.StatusCreated {
			t.Fatalf("got %d %q, want 201 and the query unchanged", answer.StatusCode, got)
		}
	}
}

func TestHTTP_DropsHeldCallAtEnd(t *testing.T) {
	t.Parallel()
	var done <-chan result
	target, calls := upper(t)
	t.Run("held", func(t *testing.T) {
		p := StartHTTP(t, target)
		h := p.Hold("POST /held", Late)
		done = begin(context.WithoutCancel(t.Context()), t, p, "/held", "held")
		<-h.Reached
	})
	failed(t, done)
	if calls.Load() != 0 {
		t.Fatalf("got %d forwarded calls, want 0", calls.Load())
	}
}
