package outbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// guard dials connections. After name resolution, it checks the address that the socket is about to
// connect to.
type guard struct {
	allow  map[string]bool // host:port before name resolution, in lower case
	safe   net.Dialer
	opened net.Dialer
	log    *slog.Logger
}

// newGuard returns a guard. keepAlive is the net.Dialer setting; a negative value turns off
// keep-alive probes.
func newGuard(allow map[string]bool, deps Deps, keepAlive time.Duration) *guard {
	guardian := ssrf.New() // permits TCP to public addresses on ports 80 and 443
	opened := net.Dialer{Timeout: dialTimeout, Resolver: deps.Resolver, KeepAlive: keepAlive}
	safe := opened
	safe.Control = func(network, address string, conn syscall.RawConn) error {
		if err := guardian.Safe(network, address, conn); err != nil {
			return fmt.Errorf("%w: %w", ErrBlocked, err)
		}
		return nil
	}
	return &guard{allow: allow, safe: safe, opened: opened, log: deps.Log}
}

// dial connects to addr, a host:port. If addr is in allow, the host may have any address, because
// the operator has allowed it. Any other host must have a public address; otherwise, dial returns
// ErrBlocked. If the port is forbidden, dial does not look up the host, and the error also matches
// ErrPort.
func (g *guard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	key := strings.ToLower(addr)
	host, port, _ := net.SplitHostPort(key) // empty without a port, which the dialer rejects
	if g.allow[key] {
		return g.opened.DialContext(ctx, network, addr)
	}
	if port != ports["http"] && port != ports["https"] {
		g.log.WarnContext(ctx, "outgoing request refused", "addr", addr)
		return nil, fmt.Errorf("%w: %w", ErrBlocked, ErrPort)
	}
	if isNumericHost(host) {
		g.log.WarnContext(ctx, "outgoing request refused", "addr", addr)
		return nil, fmt.Errorf("%w: %q is not a plain address", ErrBlocked, host)
	}
	conn, err := g.safe.DialContext(ctx, network, addr)
	if errors.Is(err, ErrBlocked) {
		g.log.WarnContext(ctx, "outgoing request refused", "addr", addr)
	}
	return conn, err
}

// isNumericHost reports whether the host ends in a number and is not an IP address. Some resolvers
// read such a host, for example 2130706433 or 0177.1, as 127.0.0.1.
func isNumericHost(host string) bool {
	if addr, _ := netip.ParseAddr(host); addr.IsValid() {
		return false
	}
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndex(host, ".")+1:]
	if strings.HasPrefix(last, "0x") {
		return strings.Trim(last[2:], "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

// parseAllow returns the entries as a set, in lower case. If any entries are invalid, it returns
// one joined error for all of them.
func parseAllow(entries []string) (map[string]bool, error) {
	allow := make(map[string]bool, len(entries))
	var faults []error
	for _, entry := range entries {
		host, port, err := net.SplitHostPort(strings.ToLower(strings.TrimSpace(entry)))
		n, perr := strconv.ParseUint(port, 10, 16)
		if err != nil || perr != nil || n == 0 || host == "" || strings.ContainsAny(host, "*/@ ") {
			faults = append(faults, fmt.Errorf("OUTBOUND_ALLOW: %q is not host:port", entry))
			continue
		}
		allow[net.JoinHostPort(host, strconv.FormatUint(n, 10))] = true
	}
	return allow, errors.Join(faults...)
}
