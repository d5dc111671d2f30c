package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// courier is a network before a platform that can deliver a call long after its sender is gone.
type courier struct {
	address string // host:port
	path    string // of the calls that may be delayed
	proxy   *httputil.ReverseProxy
	ended   chan struct{}

	mu     sync.Mutex
	before int // calls that pass before the delayed one
	parcel *parcel
}

// parcel is the delayed call.
type parcel struct {
	taken     chan struct{} // closed when the courier has it whole
	send      chan struct{} // closed when it may be delivered
	delivered chan struct{} // closed when the platform has answered it
}

func startCourier(t *testing.T, target, path string) *courier {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	c := &courier{path: path, ended: make(chan struct{}), proxy: &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: &http.Transport{DisableKeepAlives: true},
	}}
	server := httptest.NewServer(c)
	c.address = server.Listener.Addr().String()
	t.Cleanup(func() {
		close(c.ended)
		server.CloseClientConnections()
		server.Close()
	})
	return c
}

// delay keeps the nth publishing call from now.
func (c *courier) delay(nth int) *parcel {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = nth - 1
	c.parcel = &parcel{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	return c.parcel
}

func (c *courier) take(r *http.Request) *parcel {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Method != http.MethodPost || r.URL.Path != c.path || c.parcel == nil {
		return nil
	}
	if c.before > 0 {
		c.before--
		return nil
	}
	p := c.parcel
	c.parcel = nil
	return p
}

// ServeHTTP carries one call.
func (c *courier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := c.take(r)
	if p == nil {
		c.proxy.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the test waits for taken in vain
	}
	close(p.taken)
	select {
	case <-p.send:
	case <-c.ended:
		return
	}
	late := r.WithContext(context.WithoutCancel(r.Context()))
	late.Body = io.NopCloser(bytes.NewReader(body))
	c.proxy.ServeHTTP(httptest.NewRecorder(), late) // nobody waits for the answer
	close(p.delivered)
}
