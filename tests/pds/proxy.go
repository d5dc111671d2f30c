package pds

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
	"strings"
	"sync"
	"testing"
)

// Proxy stands before a server on a loopback port of its own, counts calls by XRPC method, and can hold or cut one of them.
type Proxy struct {
	URL string // http://127.0.0.1:port, no trailing slash

	reverse *httputil.ReverseProxy
	closed  chan struct{}

	mu        sync.Mutex
	arrived   map[string]int
	forwarded map[string]int
	holds     []*Hold // not reached yet, oldest first
}

// StartProxy runs a proxy before target (a base URL) until the test ends; calls still held then are dropped.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatalf("pds: proxy: %v", err)
	}
	// A connection of its own per call: a stale one would fail a call that the client has every right to expect to work.
	transport := &http.Transport{DisableKeepAlives: true}
	p := &Proxy{
		reverse: &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
			Transport: transport,
			ErrorLog:  log.New(io.Discard, "", 0), // a failed call answers 502, which the test sees
		},
		closed:    make(chan struct{}),
		arrived:   map[string]int{},
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

// Arrived gives how many calls of the XRPC method the proxy has received, held ones included.
func (p *Proxy) Arrived(method string) int { return p.count(p.arrived, method) }

// Forwarded gives how many calls of the XRPC method the proxy has sent on to the server.
func (p *Proxy) Forwarded(method string) int { return p.count(p.forwarded, method) }

// Total gives Arrived for every method that was called.
func (p *Proxy) Total() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.arrived)
}

func (p *Proxy) count(of map[string]int, method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return of[method]
}

// Hold is one call that the proxy holds back, or will. Release and Drop may be called before it is reached; the first of them decides.
type Hold struct {
	method  string
	answer  bool // hold after the server has answered
	reached chan struct{}
	lost    chan struct{}
	verdict chan bool // buffered 1: true is release
}

// HoldRequest holds the next call of the method, read whole, before the server sees any of it.
// When its client dies meanwhile, the call is never forwarded: wait for Lost before Release.
func (p *Proxy) HoldRequest(method string) *Hold { return p.hold(method, false) }

// HoldAnswer lets the server carry out the next call of the method, whatever becomes of the client, and holds back the whole answer.
func (p *Proxy) HoldAnswer(method string) *Hold { return p.hold(method, true) }

func (p *Proxy) hold(method string, answer bool) *Hold {
	h := &Hold{method: method, answer: answer, reached: make(chan struct{}), lost: make(chan struct{}), verdict: make(chan bool, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = append(p.holds, h)
	return h
}

// Reached is closed when the call is being held.
func (h *Hold) Reached() <-chan struct{} { return h.reached }

// Lost is closed when the client of the held call has gone away.
func (h *Hold) Lost() <-chan struct{} { return h.lost }

// Release lets the held call, or its answer, go on.
func (h *Hold) Release() { h.decide(true) }

// Drop closes the client's connection without an answer.
func (h *Hold) Drop() { h.decide(false) }

func (h *Hold) decide(release bool) {
	select {
	case h.verdict <- release:
	default: // decided already
	}
}

// wait holds; it tells whether the call may go on.
func (h *Hold) wait(client context.Context, closed <-chan struct{}) bool {
	close(h.reached)
	select {
	case release := <-h.verdict:
		if client.Err() == nil {
			return release
		}
		close(h.lost)
		return false
	case <-client.Done():
		close(h.lost)
		return false
	case <-closed:
		return false
	}
}

// ServeHTTP carries one call.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := strings.TrimPrefix(r.URL.Path, "/xrpc/")
	h := p.arrive(method)
	if h == nil {
		p.forward(w, r, method)
		return
	}
	// Only after the body has been read to its end does the server notice that its client is gone.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		cut(w)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if h.answer {
		p.holdAnswer(w, r, h)
		return
	}
	if !h.wait(r.Context(), p.closed) {
		cut(w)
		return
	}
	p.forward(w, r, method)
}

func (p *Proxy) holdAnswer(w http.ResponseWriter, r *http.Request, h *Hold) {
	answer := httptest.NewRecorder()
	p.forward(answer, r.WithContext(context.WithoutCancel(r.Context())), h.method)
	if !h.wait(r.Context(), p.closed) {
		cut(w)
		return
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes()) // fails only when the client has gone
}

// arrive counts the call and takes the oldest hold that waits for it, if any.
func (p *Proxy) arrive(method string) *Hold {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrived[method]++
	for i, h := range p.holds {
		if h.method == method {
			p.holds = append(p.holds[:i], p.holds[i+1:]...)
			return h
		}
	}
	return nil
}

func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, method string) {
	p.mu.Lock()
	p.forwarded[method]++
	p.mu.Unlock()
	p.reverse.ServeHTTP(w, r)
}

// cut closes the connection without an answer.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil { // else it is closed already
		conn.Close()
	}
}
