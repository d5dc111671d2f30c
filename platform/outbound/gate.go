package outbound

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"crier/platform/clock"
)

// ErrTooLate is the cause of a Commit that was given up because its limit had passed before its first byte.
var ErrTooLate = errors.New("the time for this request was over before it was sent")

var errRepeated = errors.New("the request went over another connection already")

type limitKey struct{}

// WithLimit lets a Commit under ctx write only within limit from now, by a clock that also runs while the process or
// the machine is stopped: a process that goes on after that sends nothing, nor the rest of what it had begun to send.
func WithLimit(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, limitKey{}, clock.Boot()+limit)
}

// Left is how much of the limit of ctx is left; ok is false when it has none.
func Left(ctx context.Context) (left time.Duration, ok bool) {
	until, ok := ctx.Value(limitKey{}).(time.Duration)
	return until - clock.Boot(), ok
}

// gate belongs to one Commit. It knows whether any byte of the request may have left, lets none leave after that was
// denied, and lets one connection only carry it: net/http sends a request again on another connection when a kept one
// ended without an answer, and what a server says to the second is no word on the first.
type gate struct {
	ctx context.Context

	mu     sync.Mutex
	line   *line // carries the request; nil while nothing of it was written
	ended  bool
	closed bool // net/http has closed the line before the exchange ended
}

// pass is asked before every write.
func (g *gate) pass(l *line) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.line != nil && g.line != l {
		return errRepeated
	}
	if left, limited := Left(g.ctx); limited && left <= 0 {
		return ErrTooLate
	}
	if g.line == l {
		return nil
	}
	if g.ended || g.ctx.Err() != nil {
		return ErrTooLate
	}
	g.line = l
	return nil
}

// end ends the exchange and reports whether any byte of the request may have left. The first call decides what becomes
// of the connection. After a whole answer it is kept, or closed in order if net/http does not keep it: a reset could
// destroy what the server has not read yet. Otherwise it is reset: an orderly close would leave the rest of the request
// to the kernel, which goes on sending it for minutes, and the platform would act long after the Commit had failed.
func (g *gate) end(whole bool) (written bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	written = g.line != nil
	switch {
	case g.ended || !written:
	case !whole:
		reset(g.line.raw)
	case g.closed:
		_ = g.line.Conn.Close() // the answer is there
	}
	g.ended = true
	return written
}

// line is a connection of Commits, one after the other.
type line struct {
	net.Conn // for https through TLS
	raw      net.Conn
	gate     atomic.Pointer[gate] // of the exchange that has the line, or had it last
}

// Write asks the gate. A server that hangs up may have answered before, and what came is still there to be read, so
// that is left to Read to find out.
func (l *line) Write(b []byte) (int, error) {
	if err := l.gate.Load().pass(l); err != nil {
		return 0, err
	}
	n, err := l.Conn.Write(b)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return len(b), nil
	}
	return n, err
}

// Close is called by net/http, before the reader of an answer can know that it was whole. While an exchange lasts it
// only ends all reading and writing; the end of the exchange then closes the connection.
func (l *line) Close() error {
	g := l.gate.Load()
	if g == nil {
		return l.Conn.Close()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended || g.line != l {
		return l.Conn.Close()
	}
	g.closed = true
	return l.raw.SetDeadline(time.Unix(1, 0))
}

// reset closes a connection so that the kernel drops what it has not sent yet. SetLinger fails only on a connection
// that is closed already.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
