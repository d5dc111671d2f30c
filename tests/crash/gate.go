package main

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// gate stands before a TCP server. It can be closed, which refuses and breaks connections, be silent, which keeps
// back what is sent until the silence ends, or swallow: what is sent is lost, and the connection looks open to the
// caller, as when the machine behind has lost its power.
type gate struct {
	address string
	mu      sync.Mutex
	turn    *sync.Cond
	behind  string
	silent  bool
	ln      net.Listener // nil while closed
	conns   map[net.Conn]bool
	pairs   map[net.Conn]net.Conn // callers' connections, and those to the server
	lost    map[net.Conn]bool     // callers' connections that are swallowed for good
	deaf    bool                  // new connections are swallowed too
	work    sync.WaitGroup
}

func newGate(behind string) (*gate, error) { return newGateOn("127.0.0.1", behind) }

// newGateOn returns a gate on an address of its own, so that it counts as a machine of its own.
func newGateOn(host, behind string) (*gate, error) {
	g := &gate{address: net.JoinHostPort(host, "0"), behind: behind, conns: map[net.Conn]bool{}, pairs: map[net.Conn]net.Conn{}, lost: map[net.Conn]bool{}}
	g.turn = sync.NewCond(&g.mu)
	return g, g.open(behind)
}

// open listens again, for the server behind; it does not end a silence.
func (g *gate) open(behind string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.behind = behind
	if g.ln != nil {
		return nil
	}
	ln, err := net.Listen("tcp", g.address)
	if err != nil {
		return err
	}
	g.ln, g.address = ln, ln.Addr().String()
	g.work.Go(func() { g.accept(ln) })
	return nil
}

// close refuses everybody from now on.
func (g *gate) close() error {
	g.mu.Lock()
	var err error
	if g.ln != nil {
		err = g.ln.Close()
		g.ln = nil
	}
	for c := range g.conns {
		err = errors.Join(err, ignoreClosed(c.Close()))
	}
	clear(g.conns)
	clear(g.lost)
	g.turn.Broadcast()
	g.mu.Unlock()
	g.work.Wait()
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// silence begins or ends.
func (g *gate) silence(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.silent = on
	g.turn.Broadcast()
}

// swallow loses all that is sent on the connections that are open, for good, and on new ones if deaf; it returns how
// many were open. The server sees their end, so that it holds no locks for a caller that it will never hear again.
func (g *gate) swallow(deaf bool) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.pairs)
	for in, out := range g.pairs {
		g.lost[in] = true
		_ = out.Close() // its reader ends with an error
	}
	g.deaf = deaf
	return n
}

// hear ends the swallowing of new connections. What is lost stays lost.
func (g *gate) hear() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deaf = false
}

// isLost reports whether a caller's connection is swallowed.
func (g *gate) isLost(in net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lost[in]
}

// ignore reads until the caller gives up.
func (g *gate) ignore(in net.Conn) {
	_, _ = io.Copy(io.Discard, in) // it ends with the connection
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.lost, in)
}

func (g *gate) accept(ln net.Listener) {
	for {
		in, err := ln.Accept()
		if err != nil {
			return // it was closed
		}
		if g.keep(ln, in) {
			g.work.Go(func() { g.join(ln, in) })
		}
	}
}

// keep notes a connection, so that close ends it; one that comes after a close is ended at once.
func (g *gate) keep(ln net.Listener, c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ln != ln {
		_ = c.Close() // nothing was sent
		return false
	}
	g.conns[c] = true
	return true
}

func (g *gate) drop(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lost[c] {
		return
	}
	delete(g.conns, c)
	_ = c.Close() // the other side sees the end, which is all that there is to tell
}

// pass waits for the end of a silence; false means that the connection was ended meanwhile.
func (g *gate) pass(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.silent && g.conns[c] {
		g.turn.Wait()
	}
	return g.conns[c]
}

func (g *gate) join(ln net.Listener, in net.Conn) {
	defer g.drop(in)
	if !g.pass(in) {
		return
	}
	g.mu.Lock()
	behind, deaf := g.behind, g.deaf
	if deaf {
		g.lost[in] = true
	}
	g.mu.Unlock()
	if !deaf {
		g.connect(ln, in, behind)
	}
	if g.isLost(in) {
		g.ignore(in)
	}
}

// connect carries a connection until one side ends or it is swallowed.
func (g *gate) connect(ln net.Listener, in net.Conn, behind string) {
	out, err := net.DialTimeout("tcp", behind, time.Second)
	if err != nil || !g.keep(ln, out) {
		return // nobody is there: the caller's connection ends
	}
	defer g.drop(out)
	g.mu.Lock()
	g.pairs[in] = out
	g.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() { g.copy(in, out) })
	g.copy(out, in)
	back.Wait()
	g.mu.Lock()
	delete(g.pairs, in)
	g.mu.Unlock()
}

// copy moves bytes until one side ends, and ends the other then.
func (g *gate) copy(to, from net.Conn) {
	defer g.drop(to)
	defer g.drop(from)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !g.pass(from) {
			return
		}
		if _, bad := to.Write(buf[:n]); err != nil || bad != nil {
			return
		}
	}
}
