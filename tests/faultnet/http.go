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

// HTTP is a proxy in front of an HTTP server. It counts calls and can hold, drop or delay single
// calls. A call is named by its method and path. Example: "POST /api/posts".
type HTTP struct {
	// URL is http://127.0.0.1:port, without a trailing slash.
	URL string

	reverse *httputil.ReverseProxy
	closed  chan struct{}

	mu        sync.Mutex
	forwarded map[string]int
	holds     []*Held // not reached yet, oldest first
}

// StartHTTP runs a proxy in front of target, a base URL, until the test ends. Calls that are still
// held then are dropped.
func StartHTTP(t testing.TB, target string) *HTTP {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p := &HTTP{
		reverse: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
			// The server may close a connection that is kept alive, and so fail a call that the
			// client expects to succeed.
			Transport: &http.Transport{DisableKeepAlives: true},
			ErrorLog:  log.New(io.Discard, "", 0), // a failed call returns 502, which the test sees
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

// Forwarded returns how many calls with this name were forwarded to the server.
func (p *HTTP) Forwarded(call string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forwarded[call]
}

// Point is the point at which a call is held.
type Point int

const (
	// Request holds the call before the server receives it. If its client leaves in the meantime,
	// the call is never forwarded.
	Request Point = iota
	// Late is like Request, but the call is forwarded even if its client has left, as on a slow
	// network.
	Late
	// Answer holds the response after the server has handled the call, even if the client leaves.
	Answer
)

// Held is a call that the proxy holds or will hold. Release and Drop may be called before the call
// arrives. The first of these calls decides.
type Held struct {
	// Reached is closed once the call is held.
	Reached chan struct{}
	// Lost is closed once the client has left. It is never closed at Late.
	Lost chan struct{}
	// Done is closed once the proxy has finished with the call.
	Done chan struct{}

	call    string
	at      Point
	release chan bool // has a buffer of 1
}

// Hold holds the next call with this name at a point.
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

// Release forwards the held call or its response.
func (h *Held) Release() { h.decide(true) }

// Drop closes the client's connection without a response.
func (h *Held) Drop() { h.decide(false) }

func (h *Held) decide(release bool) {
	select {
	case h.release <- release:
	default: // already decided
	}
}

// wait holds the call and reports whether it may proceed.
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

// ServeHTTP holds a call if Hold was called for it, and forwards every other call to the server.
func (p *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := r.Method + " " + r.URL.Path
	h := p.take(call)
	if h == nil {
		p.forward(w, r, call)
		return
	}
	defer close(h.Done)
	// The HTTP server detects that a client has left only after reading the whole body.
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

// take removes and returns the oldest hold for a call, or nil if there is none.
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

// cut closes the connection without a response.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // already closed
	}
	conn.Close()
}
