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
	// shutdownGrace is how much time requests and responses on the wire have when the server stops.
	shutdownGrace = 2 * time.Second

	// lingerTime and lingerBytes limit what is read and discarded from a client that keeps sending
	// after its response.
	lingerTime  = 2 * time.Second
	lingerBytes = 64 << 20

	// The delay after an accept error doubles each time, as in net/http.
	minAcceptDelay = 5 * time.Millisecond
	maxAcceptDelay = time.Second
)

// listener is a TCP listener that limits its open connections and can set deadlines on all of them.
// It is safe for concurrent use, and both the server and Shutdown may close it.
type listener struct {
	net.Listener
	close     func() error  // closes the listener on the first call only
	closed    chan struct{} // closed by close
	rules     connRules
	totalLog  logLimit // for connections beyond the total limit
	clientLog logLimit // for connections beyond the limit of a client
	acceptLog logLimit // for accept errors

	mu     sync.Mutex // protects the fields below
	open   map[*conn]struct{}
	counts map[string]int // open connections by the name of their quota
	forced bool           // set by forceDeadlines
}

// connRules limit the open connections.
type connRules struct {
	// total is the limit on all connections together.
	total int
	// perClient is the limit for one IPv4 address or one /64 network of IPv6. 0 means no limit per
	// client.
	perClient int
	// exempt reports whether an address counts toward total only: a proxy, which has many clients,
	// or this machine.
	exempt func(netip.Addr) bool
	log    *slog.Logger
}

// siteFactor is how many times as many connections a /48 network may have as a /64 network. Many
// subscribers have a /56 or a /48 and therefore at least 256 networks of /64.
const siteFactor = 4

// quota is a name under which connections are counted, and their maximum number.
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

// Accept returns the next connection, which is a *conn if it is TCP. It closes connections beyond a
// limit at once.
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
		_ = tcp.Close() // the connection was never used, so its error means nothing
	}
}

// logRefused logs that a quota is used up, at most once a minute for each kind of quota.
func (l *listener) logRefused(over quota) {
	switch {
	case over.name == allClients && l.totalLog.allow(clock.System{}):
		l.rules.log.Error("too many connections; closing new ones immediately",
			"setting", "MAX_CONNECTIONS", "limit", over.most)
	case over.name != allClients && l.clientLog.allow(clock.System{}):
		l.rules.log.Warn("a client has too many connections; closing new ones immediately",
			"client", over.name, "limit", over.most)
	}
}

// accept returns the next connection. After a network error, such as a shortage of file
// descriptors, it retries until the listener is closed: such errors pass once connections are
// closed, and the server would stop if it saw them. It returns other errors.
func (l *listener) accept() (net.Conn, error) {
	for pause := minAcceptDelay; ; pause = min(2*pause, maxAcceptDelay) {
		c, err := l.Listener.Accept()
		var network net.Error
		if retried := errors.As(err, &network) && !errors.Is(err, net.ErrClosed); !retried {
			return c, err
		}
		if l.acceptLog.allow(clock.System{}) {
			l.rules.log.Error("cannot accept connections; trying again", "error", err)
		}
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		case <-time.After(pause):
		}
	}
}

// allClients is the name of the quota for all connections. The other names are addresses, networks
// or unknownClient.
const allClients = "everyone"

// quotas returns the quotas that a connection from an address counts toward: the quota of all
// connections and, unless the address is exempt, the quotas of its client and of its /48 network.
func (l *listener) quotas(from net.Addr) []quota {
	out := []quota{{name: allClients, most: l.rules.total}}
	var ip netip.Addr // stays zero, the address of unknown clients, if from has no IP
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

// add counts the connection toward its quotas. If one of them is used up, it counts nothing and
// returns that quota and false.
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

// remove forgets a connection that begins to close, so that forceDeadlines no longer sets its
// deadlines.
func (l *listener) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

// uncount stops counting a connection toward its quotas. It is called once the connection is
// closed.
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

// forceDeadlines ends all reads now and all writes after shutdownGrace, including those that begin
// later. Handlers that neither read nor write keep running.
func (l *listener) forceDeadlines() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forced = true
	now := clock.System{}.Now()
	for c := range l.open {
		// SetReadDeadline fails only for a closed connection, which needs no deadline.
		_ = c.TCPConn.SetReadDeadline(now)
		_ = c.TCPConn.SetWriteDeadline(now.Add(shutdownGrace))
	}
}

// setDeadline calls set with t. After forceDeadlines, it calls set with grace from now if that is
// earlier.
func (l *listener) setDeadline(set func(time.Time) error, t time.Time, grace time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if soon := (clock.System{}).Now().Add(grace); l.forced && (t.IsZero() || t.After(soon)) {
		t = soon
	}
	return set(t)
}

// extendDeadline calls set with t, a later deadline of a running transfer. After forceDeadlines, it
// does nothing.
func (l *listener) extendDeadline(set func(time.Time) error, t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.forced {
		return nil
	}
	return set(t)
}

// conn is a TCP connection with limits for long transfers. It can be closed so that a client that
// is still sending receives its response; a plain close would reset the connection.
type conn struct {
	*net.TCPConn
	owner  *listener
	quotas []quota // the quotas that it counts toward
	// in limits the body being read, and out the response being written. If one is nil, the
	// server's deadline applies. Only the goroutine of the connection uses them.
	in, out *transferLimit
	linger  atomic.Bool
	once    sync.Once
	err     error // from the close, set by once
}

// Read sets the read deadline before each read if in is set, because the deadline moves with the
// bytes that have arrived.
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

// Write sets the write deadline before each write if out is set, but not after forceDeadlines.
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

// ReadFrom writes what it reads from r. If out is set, it writes in pieces, each under its own
// deadline.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if c.out == nil {
		return c.TCPConn.ReadFrom(r)
	}
	// Hides the method ReadFrom, which would call itself.
	return io.Copy(struct{ io.Writer }{Writer: c}, r)
}

// SetReadDeadline sets the deadline for reads. After forceDeadlines, it is now at the latest.
func (c *conn) SetReadDeadline(t time.Time) error {
	return c.owner.setDeadline(c.TCPConn.SetReadDeadline, t, 0)
}

// SetWriteDeadline sets the deadline for writes. After forceDeadlines, it is shutdownGrace from now
// at the latest.
func (c *conn) SetWriteDeadline(t time.Time) error {
	return c.owner.setDeadline(c.TCPConn.SetWriteDeadline, t, shutdownGrace)
}

// Linger makes Close read and discard what the client is still sending, within lingerTime and
// lingerBytes.
func (c *conn) Linger() { c.linger.Store(true) }

// Close closes the connection. After Linger, this can take lingerTime. Later calls return the error
// of the first.
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

// discard ends the outgoing stream, and reads the incoming stream to its end, the deadline or the
// byte limit.
func (c *conn) discard() {
	if err := c.CloseWrite(); err != nil {
		return
	}
	if err := c.TCPConn.SetReadDeadline(clock.System{}.Now().Add(lingerTime)); err != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.TCPConn, lingerBytes)
}
