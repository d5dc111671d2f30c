package faultnet

import (
	"bytes"
	"context"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
)

// HTTP is a proxy in front of an HTTP server. It counts calls and can hold, drop or delay one of them. A call is named
// as "POST /path".
type HTTP struct {
	// URL is http://127.0.0.1:port, without a trailing slash.
	URL string

	reverse *httputil.ReverseProxy
	closed  chan struct{}

	mu        sync.Mutex
	forwarded map[string]int
	holds     []*Held // not reached yet, oldest first
}

// StartHTTP runs a proxy in front of target (a base URL) until the test ends. Calls that are still held are dropped
// then.
func StartHTTP(t testing.TB, target string) *HTTP {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p := &HTTP{
		reverse: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
			// A kept connection may be closed by the server and fail a call that the client expects to succeed.
			Transport: &http.Transport{DisableKeepAlives: true},
			ErrorLog:  log.New(io.Discard, "", 0), // a failed call answers 502, which the test sees
		},
		closed:    make(chan struct{}),
		forwarded: map[string]int{},
	}
	server := httptest.NewServer(p)
	p.URL = server.URL
	t.Cleanup(func() {
		close(p.closed)
		server.CloseClientConnections()
		server.Close()
	})
	return p
}

// Forwarded returns how many of these calls were forwarded to the server.
func (p *HTTP) Forwarded(call string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forwarded[call]
}

// Point is where a call is held.
type Point int

const (
	// Request is before the server receives the call. A call whose client leaves meanwhile is never forwarded.
	Request Point = iota
	// Late is like Request, but the call is also forwarded when its client has left, as on a slow network.
	Late
	// Answer is after the server has handled the call, even if the client leaves.
	Answer
)

// Held is a call that the proxy holds or will hold. Release and Drop may be called before it is reached; the first of
// them decides.
type Held struct {
	// Reached is closed when the call is being held.
	Reached chan struct{}
	// Lost is closed when its client has left; never if it is held at Late.
	Lost chan struct{}
	// Done is closed when the proxy has finished with the call.
	Done chan struct{}

	call    string
	at      Point
	release chan bool // buffered 1
}

// Hold holds the next such call at a point.
func (p *HTTP) Hold(call string, at Point) *Held {
	h := &Held{
		Reached: make(chan struct{}), Lost: make(chan struct{}), Done: make(chan struct{}),
		call: call, at: at, release: make(chan bool, 1),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = append(p.holds, h)
	return h
}

// Release forwards the held call, or its answer.
func (h *Held) Release() { h.decide(true) }

// Drop closes the client's connection without an answer.
func (h *Held) Drop() { h.decide(false) }

func (h *Held) decide(release bool) {
	select {
	case h.release <- release:
	default: // already decided
	}
}

// wait holds the call and reports whether it may continue.
func (h *Held) wait(client context.Context, closed <-chan struct{}) bool {
	close(h.Reached)
	select {
	case release := <-h.release:
		if client.Err() == nil {
			return release
		}
	case <-client.Done():
	case <-closed:
		return false
	}
	close(h.Lost)
	return false
}

// ServeHTTP holds a call for which Hold was called, and forwards every other call to the server.
func (p *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := r.Method + " " + r.URL.Path
	h := p.take(call)
	if h == nil {
		p.forward(w, r, call)
		return
	}
	defer close(h.Done)
	// The server notices a lost client only after it has read the whole body.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		cut(w)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	client, answer := r.Context(), httptest.NewRecorder()
	if h.at != Request {
		r = r.WithContext(context.WithoutCancel(client))
	}
	if h.at == Late {
		client = r.Context()
	}
	if h.at == Answer {
		p.forward(answer, r, call)
	}
	if !h.wait(client, p.closed) {
		cut(w)
		return
	}
	if h.at != Answer {
		p.forward(answer, r, call)
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes()) // fails only if the client has left
}

// take removes and returns the oldest hold for such a call, or nil.
func (p *HTTP) take(call string) *Held {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.holds, func(h *Held) bool { return h.call == call })
	if i < 0 {
		return nil
	}
	h := p.holds[i]
	p.holds = slices.Delete(p.holds, i, i+1)
	return h
}

func (p *HTTP) forward(w http.ResponseWriter, r *http.Request, call string) {
	p.mu.Lock()
	p.forwarded[call]++
	p.mu.Unlock()
	p.reverse.ServeHTTP(w, r)
}

// cut closes the connection without an answer.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // it is closed
	}
	conn.Close()
}
