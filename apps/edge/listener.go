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
	once sync.Once
	err  error

	mu   sync.Mutex
	open map[*conn]struct{}
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

// Close closes at the first call and answers the same to every other.
func (l *listener) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}

// hurry ends every reading now and every writing soon; a handler that computes is left alone.
func (l *listener) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := clock.System{}.Now()
	for c := range l.open {
		_ = c.SetReadDeadline(now) // a closed connection needs no deadline
		_ = c.SetWriteDeadline(now.Add(shutdownPatience))
	}
}

// conn is a connection that can be closed so that the client still reads its answer: a plain close while it is sending would be a reset.
type conn struct {
	*net.TCPConn
	from   *listener
	linger atomic.Bool
	once   sync.Once
	err    error
}

// Linger makes Close read away, for a moment, what the client is still sending.
func (c *conn) Linger() { c.linger.Store(true) }

// Close closes at the first call and answers the same to every other.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.from.mu.Lock()
		delete(c.from.open, c)
		c.from.mu.Unlock()
		if c.linger.Load() && c.CloseWrite() == nil && c.SetReadDeadline(clock.System{}.Now().Add(lingerTime)) == nil {
			_, _ = io.CopyN(io.Discard, c.TCPConn, lingerBytes) // its end, its silence or its insistence: all end here
		}
		c.err = c.TCPConn.Close()
	})
	return c.err
}
