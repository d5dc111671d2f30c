package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"crier/platform/clock"
)

// ErrTooLate is returned by writes after the limit set with WithLimit. If a Commit fails because of
// a write rejected in this way, its error matches ErrTooLate.
var ErrTooLate = errors.New("the time limit for this request passed before it was sent")

var errRepeated = errors.New("the request was already sent on another connection")

type limitKey struct{}

// WithLimit returns a context that lets Commit and DialWebsocket write only until limit has passed.
// Time during which the process or the machine is suspended counts toward the limit. A process that
// resumes after the limit sends nothing, not even the rest of a request that it had begun.
func WithLimit(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, limitKey{}, clock.Boot()+limit)
}

// Left returns how much of ctx's limit is left. ok is false if ctx has no limit.
func Left(ctx context.Context) (left time.Duration, ok bool) {
	until, ok := ctx.Value(limitKey{}).(time.Duration)
	return until - clock.Boot(), ok
}

// gate controls the writes of one Commit. It records whether any byte of the request may have left
// this machine. Once it has reported that no byte has left, it allows no further write.
//
// It also ensures that the request is sent on only one connection. If a kept connection ends
// without a response, net/http sends the request again on another connection. The response to the
// second request would not show what became of the first.
type gate struct {
	ctx context.Context

	mu     sync.Mutex
	line   *line // carries the request; nil until some of it is written
	ended  bool
	closed bool // net/http closed the line before the exchange ended
	late   bool // a write was rejected with ErrTooLate
}

// pass is called before every write to a line. It returns ErrTooLate if the request must no longer
// be sent, and errRepeated if the request is already being sent on a different line.
func (g *gate) pass(l *line) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.line != nil && g.line != l {
		return errRepeated
	}
	if left, limited := Left(g.ctx); limited && left <= 0 {
		g.late = true
		return ErrTooLate
	}
	if g.line == l {
		return nil
	}
	if g.ended || g.ctx.Err() != nil {
		g.late = true
		return ErrTooLate
	}
	g.line = l
	return nil
}

// withRefusal adds ErrTooLate to err if the gate rejected a write. After a rejected write, net/http
// closes the connection and may return the resulting read error instead of ErrTooLate.
func (g *gate) withRefusal(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.late || errors.Is(err, ErrTooLate) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrTooLate, err)
}

// end ends the exchange and reports whether any byte of the request may have left this machine.
// Only the first call affects the connection.
//
// After a complete response, the connection is kept. If net/http does not keep the connection, end
// closes it gracefully, because a reset could destroy data that the server has not read yet.
//
// Without a complete response, the connection is reset. After a graceful close, the kernel could
// keep sending the rest of the request for minutes, and the platform could act long after the
// Commit had failed.
func (g *gate) end(whole bool) (written bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	written = g.line != nil
	switch {
	case g.ended || !written:
	case !whole:
		reset(g.line.raw)
	case g.closed:
		_ = g.line.Conn.Close() // the response is complete
	}
	g.ended = true
	return written
}

// line is a connection that carries Commits, one after another.
type line struct {
	net.Conn                      // with TLS for https
	raw      net.Conn             // without TLS
	gate     atomic.Pointer[gate] // of the current or most recent exchange
}

// Write fails if the gate rejects the write. If the server has closed the connection, Write reports
// success, because the server may have responded before closing it. Read then returns the response
// or the error.
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

// Close is called by net/http, possibly before the response body has been read to the end. During
// an exchange, it only stops reads and writes, and gate.end closes the connection later.
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

// reset closes a connection so that the kernel drops unsent data. SetLinger's error is ignored
// because it occurs only on a closed connection.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
