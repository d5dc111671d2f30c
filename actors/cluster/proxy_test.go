package cluster_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"crier/platform/pg"
	"crier/tests/dbtest"
)

// proxy stands between a member and Postgres, so that the network can fail.
type proxy struct {
	ln     net.Listener
	target string
	gate   atomic.Int64 // what the proxy does with bytes and new connections
	mu     sync.Mutex
	conns  map[net.Conn]*atomic.Bool // whether what is read from the connection is swallowed
}

const (
	passing   = iota
	refusing  // new connections are closed at once
	swallowed // new connections are accepted and get no answer
)

// through returns a database that is reached through a proxy, and the same database reached directly.
func through(t *testing.T) (p *proxy, proxied, direct *pg.DB) {
	t.Helper()
	address := dbtest.URL(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p = &proxy{target: u.Host, conns: map[net.Conn]*atomic.Bool{}}
	if p.ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	u.Host = p.ln.Addr().String()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := p.ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(c) })
		}
	})
	direct = dbtest.OpenURL(t, address)
	proxied = dbtest.OpenURL(t, u.String())
	t.Cleanup(func() {
		_ = p.ln.Close() // ends the loop above
		p.cut()
		running.Wait()
	})
	return p, proxied, direct
}

func (p *proxy) serve(near net.Conn) {
	defer func() { _ = near.Close() }() // either end may be closed already
	if p.gate.Load() == refusing {
		return
	}
	far, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	dead := &atomic.Bool{}
	dead.Store(p.gate.Load() == swallowed)
	p.mu.Lock()
	p.conns[near], p.conns[far] = dead, dead
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { copyUnless(dead, far, near) })
	both.Go(func() { copyUnless(dead, near, far) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, near)
	delete(p.conns, far)
}

func copyUnless(dead *atomic.Bool, to, from net.Conn) {
	defer func() { _ = to.Close() }() // so that the other direction ends as well
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if dead.Load() {
			continue
		}
		if _, err := io.Writer(to).Write(buf[:n]); err != nil {
			return
		}
	}
}

// swallow makes every open connection silent, without closing it.
func (p *proxy) swallow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, dead := range p.conns {
		dead.Store(true)
	}
}

// cut closes every open connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close() // it may be closed already
	}
}
