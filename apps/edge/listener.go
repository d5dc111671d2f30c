package edge

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"crier/platform/clock"
)

const (
	shutdownPatience = 2 * time.Second // for requests and answers on the wire when the server stops
	lingerTime       = 2 * time.Second // to read away what a client goes on sending after its answer
	lingerBytes      = 64 << 20
)

// listener knows its connections; two may close it.
type listener struct {
	net.Listener
	close func() error // once

	mu      sync.Mutex
	open    map[*conn]struct{}
	hurried bool
}

// Accept wraps what speaks TCP.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	tcp, ok := c.(*net.TCPConn)
	if err != nil || !ok {
		return c, err
	}
	own := &conn{TCPConn: tcp, from: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[own] = struct{}{}
	return own, nil
}

func listenOn(ln net.Listener) *listener {
	return &listener{Listener: ln, close: sync.OnceValue(ln.Close), open: map[*conn]struct{}{}}
}

// Close closes at the first call and answers the same to every other.
func (l *listener) Close() error { return l.close() }

// hurry ends every reading now and every writing soon, also of what the server begins later; a handler that computes is left alone.
func (l *listener) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hurried = true
	now := clock.System{}.Now()
	for c := range l.open {
		_ = c.TCPConn.SetReadDeadline(now) // a closed connection needs no deadline
		_ = c.TCPConn.SetWriteDeadline(now.Add(shutdownPatience))
	}
}

// limit sets a deadline, or an earlier one when the listener is in a hurry.
func (l *listener) limit(set func(time.Time) error, t time.Time, patience time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if soon := (clock.System{}).Now().Add(patience); l.hurried && (t.IsZero() || t.After(soon)) {
		t = soon
	}
	return set(t)
}

// conn is a connection that can be closed so that the client still reads its answer: a plain close while it is sending would be a reset.
type conn struct {
	*net.TCPConn
	from   *listener
	linger atomic.Bool
	once   sync.Once
	err    error
}

// SetReadDeadline leaves no time when the listener is in a hurry.
func (c *conn) SetReadDeadline(t time.Time) error {
	return c.from.limit(c.TCPConn.SetReadDeadline, t, 0)
}

// SetWriteDeadline leaves little time when the listener is in a hurry.
func (c *conn) SetWriteDeadline(t time.Time) error {
	return c.from.limit(c.TCPConn.SetWriteDeadline, t, shutdownPatience)
}

// Linger makes Close read away, for a moment, what the client is still sending.
func (c *conn) Linger() { c.linger.Store(true) }

// Close closes at the first call and answers the same to every other.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.from.mu.Lock()
		delete(c.from.open, c)
		c.from.mu.Unlock()
		if c.linger.Load() && c.CloseWrite() == nil && c.TCPConn.SetReadDeadline(clock.System{}.Now().Add(lingerTime)) == nil {
			_, _ = io.CopyN(io.Discard, c.TCPConn, lingerBytes) // its end, its silence or its insistence: all end here
		}
		c.err = c.TCPConn.Close()
	})
	return c.err
}
