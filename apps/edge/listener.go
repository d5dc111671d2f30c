package edge

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"crier/platform/clock"
)

const (
	shutdownPatience = 2 * time.Second // for requests and answers on the wire when the server stops
	lingerTime       = 2 * time.Second // to read away what a client goes on sending after its answer
	lingerBytes      = 64 << 20

	// The pauses after an error of accept: twice as long each time, as in net/http.
	leastAcceptPause = 5 * time.Millisecond
	mostAcceptPause  = time.Second
)

// listener knows its connections; two may close it.
type listener struct {
	net.Listener
	close  func() error  // once
	closed chan struct{} // closed by close
	rules  connRules
	full   rarely // limits the log of connections beyond all
	busy   rarely // limits the log of connections beyond a client's
	failed rarely // limits the log of errors of accept

	mu      sync.Mutex
	open    map[*conn]struct{}
	counts  map[string]int // open connections by the name of their quota
	hurried bool
}

// connRules limit the open connections: all of them, and those of one client. The addresses that free returns true for,
// which are a proxy's, who has many clients, and this machine's, count among all connections only.
type connRules struct {
	all  int
	most int // of an IPv4 address or a /64 network of IPv6; 0 = no limit of a client
	free func(netip.Addr) bool
	log  *slog.Logger
}

// siteFactor is how many times the connections of a /64 network its /48 may have: many subscribers have a /56 or a /48, and
// with it hundreds of /64 networks and more.
const siteFactor = 4

// quota is a name under which connections are counted, and how many it may have.
type quota struct {
	name string
	most int
}

func listenOn(ln net.Listener, rules connRules) *listener {
	closed := make(chan struct{})
	return &listener{
		Listener: ln, closed: closed, rules: rules, open: map[*conn]struct{}{}, counts: map[string]int{},
		close: sync.OnceValue(func() error { close(closed); return ln.Close() }),
	}
}

// Accept wraps what speaks TCP, and closes at once what is one too many.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.accept()
		tcp, ok := c.(*net.TCPConn)
		if err != nil || !ok {
			return c, err
		}
		own := &conn{TCPConn: tcp, from: l, quotas: l.quotas(tcp.RemoteAddr())}
		over, ok := l.add(own)
		if ok {
			return own, nil
		}
		l.refused(over)
		_ = tcp.Close() // whether it could still be told or not
	}
}

func (l *listener) refused(over quota) {
	switch {
	case over.name == everyone && l.full.allow(clock.System{}):
		l.rules.log.Error("too many connections; more are closed at once", "setting", "MAX_CONNECTIONS", "limit", over.most)
	case over.name != everyone && l.busy.allow(clock.System{}):
		l.rules.log.Warn("a client has too many connections; more are closed at once", "client", over.name, "limit", over.most)
	}
}

// accept returns the next connection. The network's errors, such as a shortage of file descriptors, end when others close
// theirs, so that it waits and tries again until the listener is closed: the server would end at an error, and the process with it.
func (l *listener) accept() (net.Conn, error) {
	for pause := leastAcceptPause; ; pause = min(2*pause, mostAcceptPause) {
		c, err := l.Listener.Accept()
		var network net.Error
		if err == nil || errors.Is(err, net.ErrClosed) || !errors.As(err, &network) {
			return c, err
		}
		if l.failed.allow(clock.System{}) {
			l.rules.log.Error("connections cannot be accepted; trying again", "error", err)
		}
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		case <-time.After(pause):
		}
	}
}

// everyone is the name under which all connections are counted.
const everyone = "everyone"

// quotas returns what a connection from an address is counted under.
func (l *listener) quotas(from net.Addr) []quota {
	out := []quota{{everyone, l.rules.all}}
	var ip netip.Addr // of no network, and unknown
	if at, ok := from.(*net.TCPAddr); ok {
		ip = plain(at.AddrPort().Addr())
	}
	if l.rules.most == 0 || l.rules.free(ip) {
		return out
	}
	out = append(out, quota{network(ip), l.rules.most})
	if ip.Is6() {
		out = append(out, quota{netip.PrefixFrom(ip, 48).Masked().String(), siteFactor * l.rules.most})
	}
	return out
}

// add returns the quota that has no place left for the connection, or true.
func (l *listener) add(c *conn) (over quota, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range c.quotas {
		if l.counts[q.name] >= q.most {
			return q, false
		}
	}
	for _, q := range c.quotas {
		l.counts[q.name]++
	}
	l.open[c] = struct{}{}
	return quota{}, true
}

// remove is called when the connection begins to close.
func (l *listener) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

// leave is called when the connection is closed: until then it counts.
func (l *listener) leave(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range c.quotas {
		if l.counts[q.name]--; l.counts[q.name] == 0 {
			delete(l.counts, q.name)
		}
	}
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

// extend sets a later deadline for what is under way; the one that hurry has set stays.
func (l *listener) extend(set func(time.Time) error, t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hurried {
		return nil
	}
	return set(t)
}

// conn is a connection that can be closed so that the client still reads its answer: a plain close while it is sending would be a reset.
type conn struct {
	*net.TCPConn
	from   *listener
	quotas []quota // that it counts in
	// in is the pace of the body that is read and out that of the answer that is written; nil = the server's deadlines. Only
	// the goroutine of the connection uses them.
	in, out *pace
	linger  atomic.Bool
	once    sync.Once
	err     error
}

// Read keeps the deadline of the pace, if there is one.
func (c *conn) Read(b []byte) (int, error) {
	if c.in == nil {
		return c.TCPConn.Read(b)
	}
	if err := c.SetReadDeadline(c.in.deadline()); err != nil {
		return 0, err
	}
	n, err := c.TCPConn.Read(b)
	c.in.moved += int64(n)
	return n, err
}

// Write keeps the deadline of the pace, if there is one.
func (c *conn) Write(b []byte) (int, error) {
	if c.out == nil {
		return c.TCPConn.Write(b)
	}
	if err := c.from.extend(c.TCPConn.SetWriteDeadline, c.out.deadline()); err != nil {
		return 0, err
	}
	n, err := c.TCPConn.Write(b)
	c.out.moved += int64(n)
	return n, err
}

// ReadFrom writes in pieces when there is a pace, each with a deadline of its own.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if c.out == nil {
		return c.TCPConn.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{c}, r)
}

// pace is how fast a body or an answer must move: with the least rate of bytes a second on the average since begun, apart
// from grace, and whole before end.
type pace struct {
	begun, end time.Time
	grace      time.Duration
	rate       int64
	moved      int64 // bytes until now
}

// deadline returns until when the next bytes must have moved.
func (p *pace) deadline() time.Time {
	earned := min(time.Duration(p.moved/p.rate), p.end.Sub(p.begun)/time.Second) * time.Second
	if at := p.begun.Add(p.grace + earned); at.Before(p.end) {
		return at
	}
	return p.end
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
		c.from.remove(c)
		defer c.from.leave(c)
		if c.linger.Load() && c.CloseWrite() == nil && c.TCPConn.SetReadDeadline(clock.System{}.Now().Add(lingerTime)) == nil {
			_, _ = io.CopyN(io.Discard, c.TCPConn, lingerBytes) // its end, its silence or its insistence: all end here
		}
		c.err = c.TCPConn.Close()
	})
	return c.err
}
