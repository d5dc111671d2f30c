package edge

import (
	"bytes"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/platform/clock"
)

// unknown stands for a client whose address a trusted proxy did not say readably. All such clients share what is counted
// for an address, and nothing trusts them.
const unknown = "unknown"

// clientName returns what requests of one client are counted and logged under: its IPv4 address, the /64 network of its
// IPv6 address, or unknown. A subscriber has at least a /64, and many have a /56 or a /48: whoever counts by this name must
// bear that one client has many.
func (s *Server) clientName(c *fiber.Ctx) string { return network(s.clientAddr(c)) }

// clientSite returns the largest network that one subscriber usually has: the IPv4 address of the client, the /48 network
// of its IPv6 address, or unknown. Several subscribers may be in it.
func (s *Server) clientSite(c *fiber.Ctx) string { return prefix(s.clientAddr(c), 48) }

// network returns the IPv4 address or the /64 network of an IPv6 address as text, and unknown for the zero address.
func network(ip netip.Addr) string { return prefix(ip, 64) }

// prefix is network for another length of the prefix.
func prefix(ip netip.Addr, bits int) string {
	switch ip = ip.Unmap(); {
	case !ip.IsValid():
		return unknown
	case ip.Is4():
		return ip.String()
	}
	return netip.PrefixFrom(ip, bits).Masked().String()
}

// clientAddr returns the nearest address that is no trusted proxy; without TRUSTED_PROXIES that is whoever connected. It is
// the zero address when a hop that has to be read before is empty or no address.
func (s *Server) clientAddr(c *fiber.Ctx) netip.Addr {
	lines := c.Request().Header.PeekAll(fiber.HeaderXForwardedFor)
	ip, hops, more := peer(c), string(bytes.Join(lines, []byte(","))), len(lines) > 0
	for more && s.trusts(ip) { // a proxy appends: to the last line, or a line of its own
		i := strings.LastIndexByte(hops, ',')
		ip, hops, more = hop(hops[i+1:]), hops[:max(0, i)], i >= 0
	}
	return ip
}

// hop returns the address of an entry of X-Forwarded-For, which may have a port or brackets. It returns the zero address,
// which no network contains, when the entry is anything else.
func hop(s string) netip.Addr {
	s = strings.TrimSpace(s)
	if at, err := netip.ParseAddrPort(s); err == nil {
		return plain(at.Addr())
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		if s, ok = strings.CutSuffix(inner, "]"); !ok || !strings.Contains(s, ":") {
			return netip.Addr{}
		}
	}
	ip, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}
	}
	return plain(ip)
}

// peer returns the address that the connection comes from.
func peer(c *fiber.Ctx) netip.Addr {
	ip, _ := netip.AddrFromSlice(c.Context().RemoteIP()) // the zero address without one
	return plain(ip)
}

// plain returns an address in the one form that networks are compared with: IPv4 as such, and without a zone.
func plain(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }

// trusts returns whether an address is a trusted proxy's; the zero address is not.
func (s *Server) trusts(ip netip.Addr) bool {
	for _, p := range s.trusted {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// connRules limit the connections. A proxy has many clients, and this machine is the operator's.
func (s *Server) connRules() connRules {
	return connRules{all: s.cfg.MaxConns, most: s.cfg.ClientConns, log: s.deps.Log, free: func(ip netip.Addr) bool {
		return ip.IsLoopback() || s.trusts(ip)
	}}
}

// forwarding are the headers in which a proxy names its client. Only the first one is read, and only from a trusted proxy.
var forwarding = [...]string{fiber.HeaderXForwardedFor, fiber.HeaderForwarded, "X-Real-Ip"}

// warnForwarded logs, at most once a minute each, that a proxy names clients although it is not trusted, and that a
// trusted one names them only in headers that are not read: then all its clients share one address, and with it the
// limits of one client. The header changes nothing.
func (s *Server) warnForwarded(c *fiber.Ctx) error {
	for _, name := range forwarding {
		if c.Request().Header.Peek(name) != nil {
			s.warnUnread(c, name)
			break
		}
	}
	return c.Next()
}

// warnUnread logs a forwarding header, the first one of a request, unless it is read.
func (s *Server) warnUnread(c *fiber.Ctx, name string) {
	ip := peer(c)
	switch trusted := s.trusts(ip); {
	case !trusted && s.forwarded.allow(s.deps.Clock):
		s.deps.Log.WarnContext(c.UserContext(), "a forwarding header of an address that is not in TRUSTED_PROXIES is ignored; "+
			"if that address is your proxy, add it, or all its clients count as one", "header", name, "peer", ip.String())
	case trusted && name != fiber.HeaderXForwardedFor && s.unread.allow(s.deps.Clock):
		s.deps.Log.WarnContext(c.UserContext(), "a proxy in TRUSTED_PROXIES names its clients in a header that is not read; "+
			"let it send X-Forwarded-For, or all its clients count as one", "header", name, "peer", ip.String())
	}
}

// rarely lets one event a minute pass, the first at once. It is safe for concurrent use.
type rarely struct{ last atomic.Int64 }

func (r *rarely) allow(c clock.Clock) bool {
	now, last := c.Now().UnixNano(), r.last.Load()
	return (last == 0 || now-last >= int64(time.Minute)) && r.last.CompareAndSwap(last, now)
}
