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
	// shutdownGrace is how long requests may still take to arrive once the server begins to shut
	// down. Responses may then take another shutdownGrace.
	shutdownGrace = 2 * time.Second

	// lingerTime and lingerBytes limit how long and how much the server reads from a client that
	// keeps sending after the response. The server discards what it reads.
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
	clientLog logLimit // for connections beyond a client's limit
	acceptLog logLimit // for accept errors

	mu     sync.Mutex // protects the fields below
	open   map[*conn]struct{}
	counts map[string]int // open connections by quota name
	forced bool           // set by forceDeadlines
}

// connRules holds the limits on open connections.
type connRules struct {
	// total is the maximum number of open connections.
	total int
	// perClient is the maximum number of open connections for one IPv4 address or one IPv6 /64
	// network. 0 means no limit per client.
	perClient int
	// exempt reports whether connections from an address count only toward total. It returns true
	// for proxies, which have many clients, and for this machine.
	exempt func(netip.Addr) bool
	log    *slog.Logger
}

// siteFactor is the connection limit for a /48 network, as a multiple of the limit for a /64
// network. Many subscribers have a /56 or a /48, and therefore at least 256 /64 networks.
const siteFactor = 4

// quota is the maximum number of connections that are counted under one name.
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

// Accept returns the next connection, which is a *conn if it is a TCP connection. It immediately
// closes connections that exceed a limit.
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
		_ = tcp.Close() // the connection was never used, so the error does not matter
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

// accept returns the next connection. After a network error, such as running out of file
// descriptors, it retries until the listener is closed. Such errors go away as connections close,
// but returning one of them would stop the server. accept returns all other errors.
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

// allClients is the name of the quota for all connections. The names of other quotas are addresses,
// networks or unknownClient.
const allClients = "everyone"

// quotas returns the quotas that a connection from an address counts toward: the quota for all
// connections and, unless the address is exempt, the quotas for the client and its /48 network.
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

// add counts the connection toward its quotas. If one of the quotas is used up, add counts nothing
// and returns that quota and false.
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

// remove forgets a connection that is about to close, so that forceDeadlines no longer sets its
// deadlines.
func (l *listener) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

// uncount stops counting a connection toward its quotas. It must be called after the connection is
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

// Close closes the listener. Later calls return the same error as the first call.
func (l *listener) Close() error { return l.close() }

// forceDeadlines makes all reads fail immediately and all writes fail after shutdownGrace. This
// includes reads and writes that start later. Handlers that are neither reading nor writing keep
// running.
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

// setDeadline calls set with t. Once forceDeadlines has been called, the deadline is at most grace
// from now, even if t is later.
func (l *listener) setDeadline(set func(time.Time) error, t time.Time, grace time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if soon := (clock.System{}).Now().Add(grace); l.forced && (t.IsZero() || t.After(soon)) {
		t = soon
	}
	return set(t)
}

// extendDeadline calls set with t, the new deadline of a running transfer. Once forceDeadlines has
// been called, it does nothing.
func (l *listener) extendDeadline(set func(time.Time) error, t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.forced {
		return nil
	}
	return set(t)
}

// conn is a TCP connection with limits for long transfers. After Linger, Close lets a client that
// is still sending receive its response. A plain close would reset the connection.
type conn struct {
	*net.TCPConn
	owner  *listener
	quotas []quota // the quotas that the connection counts toward
	// in limits the body being read, and out limits the response being written. If either is nil,
	// the server's deadline applies instead. Only the connection's goroutine uses these fields.
	in, out *transferLimit
	linger  atomic.Bool
	once    sync.Once
	err     error // from closing the connection, set by once
}

// Read first sets a new read deadline if in is set, because the deadline moves as bytes arrive.
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

// Write first sets a new write deadline if out is set, unless forceDeadlines has been called.
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

// ReadFrom copies r to the connection. If out is set, it copies r in pieces, each with its own
// deadline.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if c.out == nil {
		return c.TCPConn.ReadFrom(r)
	}
	// The wrapper hides c.ReadFrom, which io.Copy would otherwise call again.
	return io.Copy(struct{ io.Writer }{Writer: c}, r)
}

// SetReadDeadline sets the deadline for reads. Once forceDeadlines has been called, the deadline is
// no later than now, even if t is.
func (c *conn) SetReadDeadline(t time.Time) error {
	return c.owner.setDeadline(c.TCPConn.SetReadDeadline, t, 0)
}

// SetWriteDeadline sets the deadline for writes. Once forceDeadlines has been called, the deadline
// is at most shutdownGrace from now, even if t is later.
func (c *conn) SetWriteDeadline(t time.Time) error {
	return c.owner.setDeadline(c.TCPConn.SetWriteDeadline, t, shutdownGrace)
}

// Linger makes Close read and discard what the client is still sending. lingerTime and lingerBytes
// limit how long and how much Close reads.
func (c *conn) Linger() { c.linger.Store(true) }

// Close closes the connection. After Linger, this can take up to lingerTime. Later calls return the
// same error as the first call.
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

// discard closes the connection for writing, and then reads until the client's stream ends,
// lingerTime has passed, or lingerBytes have been read.
func (c *conn) discard() {
	if err := c.CloseWrite(); err != nil {
		return
	}
	if err := c.TCPConn.SetReadDeadline(clock.System{}.Now().Add(lingerTime)); err != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.TCPConn, lingerBytes)
}
