package request

import (
	"net/netip"

	"github.com/valyala/fasthttp"
)

// Peer returns the address of the other end of the connection, in the form of Normalize. It can be that of a proxy.
func Peer(ctx *fasthttp.RequestCtx) netip.Addr {
	ip, _ := netip.AddrFromSlice(ctx.RemoteIP()) // the zero address when there is none
	return Normalize(ip)
}

// Normalize returns an address without a zone, and IPv4 in IPv6 as IPv4: the form in which addresses are compared.
func Normalize(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }

// Forwarding returns the first of the headers in which a proxy names its client that a request has, and "" without one.
// The service reads X-Forwarded-For only, and only from a trusted proxy.
func Forwarding(h *fasthttp.RequestHeader) string {
	for _, name := range []string{fasthttp.HeaderXForwardedFor, fasthttp.HeaderForwarded, "X-Real-Ip"} {
		if h.Peek(name) != nil {
			return name
		}
	}
	return ""
}

// IsLoopback returns whether a host, without a port, is localhost or a loopback address, which only this machine
// reaches.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
