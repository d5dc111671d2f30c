package boot

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"

	"crier/platform/fault"
)

// listen opens a TCP listener on addr, which has the form host:port. If that fails, it returns
// Unavailable with a message that names the setting to change: hostSetting or portSetting.
func listen(ctx context.Context, addr, hostSetting, portSetting string) (net.Listener, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, network(addr), addr)
	if err != nil {
		advice := "is another service using this port? Set " + portSetting + "."
		var unknown *net.DNSError
		if errors.As(err, &unknown) || errors.Is(err, syscall.EADDRNOTAVAIL) {
			advice = hostSetting + " must name an address of this machine."
		}
		return nil, fault.Wrap(fault.Unavailable, "boot.listen", "Cannot listen on "+addr+": "+advice, err)
	}
	return ln, nil
}

// network returns tcp4 for an IPv4 address and tcp otherwise. With tcp and the address 0.0.0.0,
// package net would also listen on all IPv6 addresses.
func network(addr string) string {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().Is4() {
		return "tcp"
	}
	return "tcp4"
}
