package boot

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"

	"crier/platform/fault"
)

// listen opens a TCP listener on addr, host:port. Its errors name the setting that the host or the port comes from.
func listen(ctx context.Context, addr, hostSetting, portSetting string) (net.Listener, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, network(addr), addr)
	if err == nil {
		return ln, nil
	}
	words := "is another service using this port? Set " + portSetting + "."
	var unknown *net.DNSError
	if errors.As(err, &unknown) || errors.Is(err, syscall.EADDRNOTAVAIL) {
		words = hostSetting + " must name an address of this machine."
	}
	return nil, fault.Wrap(fault.Unavailable, "boot.listen", "Cannot listen on "+addr+": "+words, err)
}

// network is tcp4 for an address of IPv4: with tcp, Go takes 0.0.0.0 for all addresses of IPv6 too.
func network(addr string) string {
	if at, err := netip.ParseAddrPort(addr); err == nil && at.Addr().Is4() {
		return "tcp4"
	}
	return "tcp"
}
