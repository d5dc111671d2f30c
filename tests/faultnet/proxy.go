// Package faultnet is a network for tests that fails on request: a TCP proxy, an HTTP proxy that holds single calls, and a
// balancer.
package faultnet

import (
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Mode is what a Proxy does with connections and with what they carry.
type Mode int

const (
	// Pass carries everything. It is the mode of a new Proxy.
	Pass Mode = iota
	// Hold keeps back connections and bytes in both directions. They go on in the next mode.
	Hold
	// Refuse ends all connections, and new ones at once.
	Refuse
	// Swallow loses all that is sent in either direction, as when a router on the way has lost its power. Connections
	// that it met stay silent in later modes, too, and stay open until the caller closes them.
	Swallow
	// Abandon is Swallow, but the server sees the end of its connections, and so holds no locks for their callers.
	Abandon
)

// Proxy carries TCP connections from its address to that of a server. It is safe for concurrent use.
type Proxy struct {
	Address string // host:port; it stays the same when the proxy is closed and opened again

	target   string
	mu       sync.Mutex
	changed  *sync.Cond // the mode, or which connections are open
	mode     Mode
	ln       net.Listener // nil while closed
	open     map[*conn]bool
	accepted int
	work     sync.WaitGroup
}

// conn is one connection.
type conn struct {
	caller, server net.Conn // server is nil until it was dialled
	lost           bool     // swallowed for good
}

// Listen opens a proxy at an address, whose port may be 0, before a server.
func Listen(address, target string) (*Proxy, error) {
	p := &Proxy{Address: address, target: target, open: map[*conn]bool{}}
	p.changed = sync.NewCond(&p.mu)
	if err := p.Open(); err != nil {
		return nil, err
	}
	p.Address = p.ln.Addr().String()
	return p, nil
}

// Start runs a proxy until the test ends. It returns the URL of the server with the proxy's address in it.
func Start(t testing.TB, server string) (p *Proxy, through string) {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = Listen("127.0.0.1:0", u.Host); err != nil {
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

// Accepted is how many connections were made so far.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Open listens again after Close. The mode stays.
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

// Close ends all connections and stops listening, so that the kernel refuses new ones. It waits until nothing runs.
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

// Set changes the mode, of open connections too, and returns how many of them it has begun to swallow.
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
				_ = c.server.Close() // it may be closed already
			}
		}
	}
	return swallowed
}

func (p *Proxy) accept(ln net.Listener) {
	for {
		caller, err := ln.Accept()
		if err != nil {
			return // it was closed
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

// connect dials the server, unless the connection is swallowed. It keeps the lock meanwhile: the server is near.
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

// copy moves bytes until one side ends, and ends the other. The caller of a swallowed connection does not see its end.
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

// passes waits for the end of Hold and reports whether the connection carries bytes.
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

// endLocked closes both sides; either may be closed already.
func (p *Proxy) endLocked(c *conn) {
	delete(p.open, c)
	_ = c.caller.Close()
	if c.server != nil {
		_ = c.server.Close()
	}
}
