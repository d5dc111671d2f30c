// Package faultnet simulates network failures for tests: a TCP proxy, an HTTP proxy that holds
// single calls, and a load balancer.
package faultnet

import (
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Mode says how a Proxy treats connections and their data.
type Mode int

const (
	// Pass forwards everything. It is the mode of a new Proxy.
	Pass Mode = iota
	// Hold holds connections and data in both directions back until the mode changes.
	Hold
	// Refuse closes all connections, and closes new ones at once.
	Refuse
	// Swallow discards all data in both directions, like a router without power. Affected
	// connections stay silent even if the mode changes, and stay open until the caller closes them.
	Swallow
	// Abandon is like Swallow, but closes the connections to the server, so that it keeps no locks
	// for them.
	Abandon
)

// Proxy forwards TCP connections to a server. It is safe for concurrent use.
type Proxy struct {
	// Address is host:port. It stays the same if the proxy is closed and opened again.
	Address string

	target   string
	mu       sync.Mutex
	changed  *sync.Cond // signaled when mode or open changes
	mode     Mode
	ln       net.Listener // nil while closed
	open     map[*conn]bool
	accepted int
	work     sync.WaitGroup
}

// conn is one connection.
type conn struct {
	caller, server net.Conn // server is nil until it is dialed
	lost           bool     // discards data forever
}

// Listen opens a proxy in front of a server. The port in address may be 0. Listen returns an error
// if it cannot listen there.
func Listen(address, target string) (*Proxy, error) {
	p := &Proxy{Address: address, target: target, open: map[*conn]bool{}}
	p.changed = sync.NewCond(&p.mu)
	if err := p.Open(); err != nil {
		return nil, err
	}
	p.Address = p.ln.Addr().String()
	return p, nil
}

// Start runs a proxy until the test ends. It returns the server's URL with the proxy's address in
// place of the server's.
func Start(t testing.TB, server string) (p *Proxy, through string) {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	p, err = Listen("127.0.0.1:0", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	u.Host = p.Address
	return p, u.String()
}

// Accepted returns the number of connections accepted so far.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Open listens again after Close, in the same mode. It returns an error if it cannot listen, for
// example because another program has taken the port.
func (p *Proxy) Open() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ln != nil {
		return nil
	}
	ln, err := net.Listen("tcp", p.Address)
	if err != nil {
		return err
	}
	p.ln = ln
	p.work.Go(func() { p.accept(ln) })
	return nil
}

// Close closes all connections and stops listening, so that the kernel refuses new ones. It waits
// until all goroutines have ended.
func (p *Proxy) Close() (err error) {
	p.mu.Lock()
	if p.ln != nil {
		err = p.ln.Close()
		p.ln = nil
	}
	p.endAll()
	p.mu.Unlock()
	p.work.Wait()
	return err
}

// Set changes the mode, also for open connections. It returns how many of them became silent.
func (p *Proxy) Set(mode Mode) (swallowed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = mode
	p.changed.Broadcast()
	switch mode {
	case Refuse:
		p.endAll()
	case Swallow, Abandon:
		for c := range p.open {
			if !c.lost && c.server != nil {
				swallowed++
			}
			c.lost = true
			if mode == Abandon && c.server != nil {
				_ = c.server.Close() // may already be closed
			}
		}
	}
	return swallowed
}

func (p *Proxy) accept(ln net.Listener) {
	for {
		caller, err := ln.Accept()
		if err != nil {
			return // the listener was closed
		}
		p.work.Go(func() { p.serve(ln, &conn{caller: caller}) })
	}
}

func (p *Proxy) serve(ln net.Listener, c *conn) {
	defer p.end(c)
	if p.connect(ln, c) != nil {
		return
	}
	var back sync.WaitGroup
	if c.server != nil {
		back.Go(func() { p.copy(c, c.caller, c.server) })
	}
	p.copy(c, c.server, c.caller)
	back.Wait()
}

// connect dials the server, unless the connection is to stay silent. It holds the lock while
// dialing, because the server is on loopback.
func (p *Proxy) connect(ln net.Listener, c *conn) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ln != ln {
		return net.ErrClosed
	}
	p.accepted++
	p.open[c] = true
	for p.mode == Hold && p.open[c] {
		p.changed.Wait()
	}
	switch {
	case p.mode == Refuse || !p.open[c]:
		return net.ErrClosed
	case p.mode == Pass:
		c.server, err = (&net.Dialer{Timeout: time.Second}).Dial("tcp", p.target)
	default:
		c.lost = true
	}
	return err
}

// copy copies data until one side ends, and then closes the other one. The caller of a silent
// connection does not see the server's side end.
func (p *Proxy) copy(c *conn, to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		over := err != nil && from == c.caller
		if p.passes(c) {
			_, bad := to.Write(buf[:n])
			err = errors.Join(err, bad)
		}
		switch {
		case err == nil:
		case over || p.passes(c):
			p.end(c)
			return
		case from == c.server:
			return
		}
	}
}

// passes waits until the mode is no longer Hold, and reports whether the connection forwards data.
func (p *Proxy) passes(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.mode == Hold && p.open[c] {
		p.changed.Wait()
	}
	return p.open[c] && !c.lost
}

func (p *Proxy) end(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked(c)
}

func (p *Proxy) endAll() {
	for c := range p.open {
		p.endLocked(c)
	}
	p.changed.Broadcast()
}

// endLocked closes both sides. Either may already be closed.
func (p *Proxy) endLocked(c *conn) {
	delete(p.open, c)
	_ = c.caller.Close()
	if c.server != nil {
		_ = c.server.Close()
	}
}
