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

	"crier/apps/edge/request"
	"crier/platform/clock"
)

const (
	// shutdownGrace is the time that requests and answers on the wire have when the server stops.
	shutdownGrace = 2 * time.Second

	// lingerTime and lingerBytes limit what is read and discarded of a client that goes on sending after its answer.
	lingerTime  = 2 * time.Second
	lingerBytes = 64 << 20

	// The delay after an error of accept doubles each time, as in net/http.
	minAcceptDelay = 5 * time.Millisecond
	maxAcceptDelay = time.Second
)

// listener is a TCP listener that limits its open connections and can set deadlines on all of them. It is safe for
// concurrent use, and both the server and Shutdown may close it.
type listener struct {
	net.Listener
	close     func() error  // closes the listener at its first call only
	closed    chan struct{} // closed by close
	rules     connRules
	totalLog  logLimit // limits the log of connections beyond the limit of all
	clientLog logLimit // limits the log of connections beyond the limit of a client
	acceptLog logLimit // limits the log of errors of accept

	mu     sync.Mutex // protects the fields below
	open   map[*conn]struct{}
	counts map[string]int // open connections by the name of their quota
	forced bool           // set by forceDeadlines
}

// connRules limit the open connections.
type connRules struct {
	// total is the limit of all connections together.
	total int
	// perClient is the limit of one IPv4 address or one /64 network of IPv6. With 0 there is no limit of a client.
	perClient int
	// exempt returns whether an address counts for total only: that of a proxy, which has many clients, or of this
	// machine.
	exempt func(netip.Addr) bool
	log    *slog.Logger
}

// siteFactor times the connections of a /64 network is the limit of its /48: many subscribers have a /56 or a /48, and
// with it at least 256 networks of /64.
const siteFactor = 4

// quota is a name under which connections are counted, and the limit of their number.
type quota struct {
	name string
	most int
}

func listenOn(ln net.Listener, rules connRules) *listener {
	closed := make(chan struct{})
	return &listener{
		Listener: ln, closed: closed, rules: rules, open: map[*conn]struct{}{}, counts: map[string]int{},
		close: sync.OnceValue(func() error {
			close(closed)
			return ln.Close()
		}),
	}
}

// Accept returns the next connection, a *conn if it is TCP. It closes connections beyond a limit at once.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.accept()
		tcp, ok := c.(*net.TCPConn)
		if err != nil || !ok {
			return c, err
		}
		own := &conn{TCPConn: tcp, owner: l, quotas: l.quotas(tcp.RemoteAddr())}
		over, ok := l.add(own)
		if ok {
			return own, nil
		}
		l.logRefused(over)
		_ = tcp.Close() // the connection was never used, so its error has no meaning
	}
}

// logRefused logs that a quota is used up, at most once a minute for each kind of quota.
func (l *listener) logRefused(over quota) {
	switch {
	case over.name == allClients && l.totalLog.allow(clock.System{}):
		l.rules.log.Error("too many connections; more are closed at once",
			"setting", "MAX_CONNECTIONS", "limit", over.most)
	case over.name != allClients && l.clientLog.allow(clock.System{}):
		l.rules.log.Warn("a client has too many connections; more are closed at once",
			"client", over.name, "limit", over.most)
	}
}

// accept returns the next connection. It retries after network errors, such as a shortage of file descriptors, until
// the listener is closed: they pass when connections are closed, and the server would stop at an error. Other errors
// are returned.
func (l *listener) accept() (net.Conn, error) {
	for pause := minAcceptDelay; ; pause = min(2*pause, maxAcceptDelay) {
		c, err := l.Listener.Accept()
		var network net.Error
		if retried := errors.As(err, &network) && !errors.Is(err, net.ErrClosed); !retried {
			return c, err
		}
		if l.acceptLog.allow(clock.System{}) {
			l.rules.log.Error("connections cannot be accepted; trying again", "error", err)
		}
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		case <-time.After(pause):
		}
	}
}

// allClients is the name of the quota of all connections. The names of the others are addresses, networks or
// unknownClient.
const allClients = "everyone"

// quotas returns the quotas that a connection from an address counts for: that of all connections and, unless the
// address is exempt, those of its client and its /48 network.
func (l *listener) quotas(from net.Addr) []quota {
	out := []quota{{name: allClients, most: l.rules.total}}
	var ip netip.Addr // stays zero, the address of unknown clients, when from has no IP
	if at, ok := from.(*net.TCPAddr); ok {
		ip = request.Normalize(at.AddrPort().Addr())
	}
	if l.rules.perClient == 0 || l.rules.exempt(ip) {
		return out
	}
	out = append(out, quota{name: network(ip), most: l.rules.perClient})
	if ip.Is6() {
		out = append(out, quota{name: netip.PrefixFrom(ip, 48).Masked().String(), most: siteFactor * l.rules.perClient})
	}
	return out
}

// add counts the connection for its quotas. When one of them is used up, it counts nothing and returns that quota and
// false.
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

// remove forgets a connection that begins to close: it gets no more deadlines of forceDeadlines.
func (l *listener) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

// uncount ends the count of a connection for its quotas. It is called when the connection is closed.
func (l *listener) uncount(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range c.quotas {
		if l.counts[q.name]--; l.counts[q.name] == 0 {
			delete(l.counts, q.name)
		}
	}
}

// Close closes the listener. Later calls return the error of the first.
func (l *listener) Close() error { return l.close() }

// forceDeadlines ends all reads now and all writes after shutdownGrace, also those that begin later. Handlers that
// neither read nor write run on.
func (l *listener) forceDeadlines() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forced = true
	now := clock.System{}.Now()
	for c := range l.open {
		_ = c.TCPConn.SetReadDeadline(now) // fails only for a closed connection, which needs no deadline
		_ = c.TCPConn.SetWriteDeadline(now.Add(shutdownGrace))
	}
}

// setDeadline calls set with t, or with grace from now if that is earlier and forceDeadlines was called.
func (l *listener) setDeadline(set func(time.Time) error, t time.Time, grace time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if soon := (clock.System{}).Now().Add(grace); l.forced && (t.IsZero() || t.After(soon)) {
		t = soon
	}
	return set(t)
}

// extendDeadline calls set with t, a later deadline of a running transfer. After forceDeadlines it does nothing.
func (l *listener) extendDeadline(set func(time.Time) error, t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.forced {
		return nil
	}
	return set(t)
}

// conn is a TCP connection with limits for long transfers. It can be closed so that a client which is still sending
// receives its answer: a plain close would reset the connection.
type conn struct {
	*net.TCPConn
	owner  *listener
	quotas []quota // the quotas that it counts for
	// in limits the body that is read, and out the answer that is written; with nil the deadlines of the server apply.
	// Only the goroutine of the connection uses them.
	in, out *transferLimit
	linger  atomic.Bool
	once    sync.Once
	err     error // of the close, set by once
}

// Read sets the read deadline of in before each read, because it moves with the bytes that have arrived.
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

// Write sets the write deadline of out before each write, but not after forceDeadlines.
func (c *conn) Write(b []byte) (int, error) {
	if c.out == nil {
		return c.TCPConn.Write(b)
	}
	if err := c.owner.extendDeadline(c.TCPConn.SetWriteDeadline, c.out.deadline()); err != nil {
		return 0, err
	}
	n, err := c.TCPConn.Write(b)
	c.out.moved += int64(n)
	return n, err
}

// ReadFrom writes what it reads from r. If out is set, it writes in pieces, each under a deadline of its own.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if c.out == nil {
		return c.TCPConn.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{Writer: c}, r) // without the method ReadFrom, which would call itself
}

// SetReadDeadline sets the deadline of reads. After forceDeadlines it is now at the latest.
func (c *conn) SetReadDeadline(t time.Time) error {
	return c.owner.setDeadline(c.TCPConn.SetReadDeadline, t, 0)
}

// SetWriteDeadline sets the deadline of writes. After forceDeadlines it is shutdownGrace from now at the latest.
func (c *conn) SetWriteDeadline(t time.Time) error {
	return c.owner.setDeadline(c.TCPConn.SetWriteDeadline, t, shutdownGrace)
}

// Linger makes Close read and discard what the client is still sending, within lingerTime and lingerBytes.
func (c *conn) Linger() { c.linger.Store(true) }

// Close closes the connection. After Linger this can take lingerTime. Later calls return the error of the first.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.owner.remove(c)
		defer c.owner.uncount(c)
		if c.linger.Load() {
			c.discard()
		}
		c.err = c.TCPConn.Close()
	})
	return c.err
}

// discard ends the stream of answers, and reads until the end of the other stream, the deadline or the limit of bytes.
func (c *conn) discard() {
	if err := c.CloseWrite(); err != nil {
		return
	}
	if err := c.TCPConn.SetReadDeadline(clock.System{}.Now().Add(lingerTime)); err != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.TCPConn, lingerBytes)
}
