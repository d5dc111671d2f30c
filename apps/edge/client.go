package edge

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/apps/edge/session"
	"crier/platform/clock"
	"crier/tenancy"
)

// unknownClient is the name shared by all clients for which a trusted proxy sent no valid address.
// Together, these clients share the limits of a single client. None of them is trusted as a proxy.
const unknownClient = "unknown"

// clients identifies the client that sent each request, even behind trusted proxies. It is safe for
// concurrent use.
type clients struct {
	trusted []netip.Prefix
	log     *slog.Logger
	clock   clock.Clock
	// forwardedLog limits how often forwarding headers from untrusted addresses are logged.
	forwardedLog logLimit
	// unreadLog limits how often the log mentions a trusted proxy that sends its clients' addresses
	// only in headers other than X-Forwarded-For.
	unreadLog logLimit
}

// note records where the request comes from, for use by later guards and handlers.
//
// Requests are counted and logged under the client's name, which is an IPv4 address, the /64
// network of an IPv6 address, or unknownClient. A subscriber has at least a /64, and many have a
// /56 or a /48. One subscriber can therefore appear under many names.
//
// The site is the largest network that one subscriber usually has, although several subscribers can
// share it. Example: the client 2001:db8:1:2::/64 belongs to the site 2001:db8:1::/48.
func (cs *clients) note(c *fiber.Ctx) error {
	device := session.Device(c)
	if len(device) > maxDevice {
		device = ""
	}
	ip := cs.clientAddr(c)
	request.From(c.Context()).From = tenancy.NewSource(
		network(ip), networkPrefix(ip, siteBits), c.Get(fiber.HeaderUserAgent), device)
	return c.Next()
}

// maxDevice is greater than the length of any valid device token, in bytes. Longer tokens are
// ignored.
const maxDevice = 128

// siteBits is the prefix length of the largest IPv6 network that one subscriber usually has.
const siteBits = 48

// network returns an IPv4 address as text, and an IPv6 address as its /64 network. It returns
// unknownClient for the zero address.
func network(ip netip.Addr) string { return networkPrefix(ip, 64) }

// networkPrefix returns an IPv4 address as text, and an IPv6 address as its network with the given
// prefix length. It returns unknownClient for the zero address.
func networkPrefix(ip netip.Addr, bits int) string {
	ip = ip.Unmap()
	switch {
	case !ip.IsValid():
		return unknownClient
	case ip.Is4():
		return ip.String()
	}
	return netip.PrefixFrom(ip, bits).Masked().String()
}

// clientAddr returns the address of the client that sent the request. It starts with the
// connection's peer and then reads X-Forwarded-For from the end, until it reaches an address that
// is not a trusted proxy. Without TRUSTED_PROXIES, it returns the peer's address. If it reaches an
// entry that is not an address, it returns the zero address.
func (cs *clients) clientAddr(c *fiber.Ctx) netip.Addr {
	lines := c.Request().Header.PeekAll(fiber.HeaderXForwardedFor)
	ip, hops, more := request.Peer(c.Context()), string(bytes.Join(lines, []byte(","))), len(lines) > 0
	// Start at the end, because a proxy appends its entry to the last line or adds a line.
	for more && cs.isTrusted(ip) {
		i := strings.LastIndexByte(hops, ',')
		ip, hops, more = parseHop(hops[i+1:]), hops[:max(0, i)], i >= 0
	}
	return ip
}

// parseHop returns the address in an X-Forwarded-For entry, which may include a port or brackets.
// If the entry is not an address, parseHop returns the zero address, which is never trusted.
// Example: [2001:db8::1]:443
func parseHop(s string) netip.Addr {
	s = strings.TrimSpace(s)
	ip, err := netip.ParseAddr(s)
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") && strings.Contains(s, ":") {
		ip, err = netip.ParseAddr(s[1 : len(s)-1])
	}
	if err != nil {
		at, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}
		}
		ip = at.Addr()
	}
	return request.Normalize(ip)
}

// isTrusted reports whether an address belongs to a trusted proxy. It returns false for the zero
// address.
func (cs *clients) isTrusted(ip netip.Addr) bool {
	for _, p := range cs.trusted {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// connRules returns the limits on connections. Proxies are exempt from the per-client limit because
// they have many clients, and loopback is exempt because it belongs to the operator.
func (cs *clients) connRules(cfg Config) connRules {
	exempt := func(ip netip.Addr) bool { return ip.IsLoopback() || cs.isTrusted(ip) }
	return connRules{total: cfg.MaxConns, perClient: cfg.ClientConns, exempt: exempt, log: cs.log}
}

// warn logs two configuration mistakes, each at most once a minute: a proxy that is not trusted
// sends its clients' addresses, or a trusted proxy sends them only in headers that are not read. In
// both cases, all of the proxy's clients share one address and the limits of one client. The
// request is served as if the header were absent.
func (cs *clients) warn(c *fiber.Ctx) error {
	if name := request.Forwarding(&c.Request().Header); name != "" {
		cs.warnUnread(c, name)
	}
	return c.Next()
}

// warnUnread logs the forwarding header with the given name, unless clientAddr reads that header.
func (cs *clients) warnUnread(c *fiber.Ctx, name string) {
	ip := request.Peer(c.Context())
	switch trusted := cs.isTrusted(ip); {
	case !trusted && cs.forwardedLog.allow(cs.clock):
		cs.log.WarnContext(c.UserContext(),
			"ignored a forwarding header from an address that is not in TRUSTED_PROXIES; "+
				"if that address is your proxy, add it, or all its clients count as one",
			"header", name, "peer", ip.String())
	case trusted && name != fiber.HeaderXForwardedFor && cs.unreadLog.allow(cs.clock):
		cs.log.WarnContext(c.UserContext(),
			"a proxy in TRUSTED_PROXIES names its clients in a header that is not read; configure it to send "+
				"X-Forwarded-For, or all its clients count as one", "header", name, "peer", ip.String())
	}
}

// logLimit allows the first log record immediately, and after that at most one per minute. It is
// safe for concurrent use.
type logLimit struct{ last atomic.Int64 }

// allow reports whether a log record may be written now. If so, it counts the record.
func (r *logLimit) allow(c clock.Clock) bool {
	now, last := c.Now().UnixNano(), r.last.Load()
	return (last == 0 || now-last >= int64(time.Minute)) && r.last.CompareAndSwap(last, now)
}
