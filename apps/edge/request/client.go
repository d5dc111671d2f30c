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

// Normalize returns an address without its zone, and converts an IPv4 address in IPv6 form to IPv4.
// Addresses are compared in this form. Example: ::ffff:192.0.2.1 becomes 192.0.2.1.
func Normalize(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }

// Forwarding returns the first header of a request in which a proxy names its client, or "" if
// there is none. The service reads only X-Forwarded-For, and only from a trusted proxy.
func Forwarding(h *fasthttp.RequestHeader) string {
	for _, name := range []string{fasthttp.HeaderXForwardedFor, fasthttp.HeaderForwarded, "X-Real-Ip"} {
		if h.Peek(name) != nil {
			return name
		}
	}
	return ""
}

// IsLoopback reports whether a host, without a port, is localhost or a loopback address, which only
// this machine can reach.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
