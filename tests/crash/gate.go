package main

import (
	"errors"
	"net"
	"sync"
	"time"
)

// gate stands before a TCP server. It may be closed, which refuses and breaks connections, or fall silent, which keeps back what is under way until it is heard again.
type gate struct {
	address string
	mu      sync.Mutex
	turn    *sync.Cond
	behind  string
	silent  bool
	ln      net.Listener // nil while closed
	conns   map[net.Conn]bool
	work    sync.WaitGroup
}

func newGate(behind string) (*gate, error) {
	g := &gate{address: "127.0.0.1:0", behind: behind, conns: map[net.Conn]bool{}}
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
	behind := g.behind
	g.mu.Unlock()
	out, err := net.DialTimeout("tcp", behind, time.Second)
	if err != nil || !g.keep(ln, out) {
		return // nobody is there: the caller's connection ends
	}
	defer g.drop(out)
	var back sync.WaitGroup
	back.Go(func() { g.copy(in, out) })
	g.copy(out, in)
	back.Wait()
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
