package request

import (
	"net/netip"

	"github.com/valyala/fasthttp"
)

// Peer returns the address of the other end of the connection, which can be a proxy. The address is
// normalized; see Normalize.
func Peer(ctx *fasthttp.RequestCtx) netip.Addr {
	ip, _ := netip.AddrFromSlice(ctx.RemoteIP()) // the zero address if there is none
	return Normalize(ip)
}

// Normalize returns ip without its zone. It converts an IPv4 address in IPv6 form to IPv4.
// Addresses are compared in this form. Example: ::ffff:192.0.2.1 becomes 192.0.2.1.
func Normalize(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }

// Forwarding returns the name of the first header in which a proxy identifies its client. It
// returns "" if there is no such header. The service itself reads only X-Forwarded-For, and only
// from a trusted proxy.
func Forwarding(h *fasthttp.RequestHeader) string {
	for _, name := range []string{fasthttp.HeaderXForwardedFor, fasthttp.HeaderForwarded, "X-Real-Ip"} {
		if h.Peek(name) != nil {
			return name
		}
	}
	return ""
}

// IsLoopback reports whether a host, given without a port, is localhost or a loopback address. Only
// this machine can reach such a host.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
