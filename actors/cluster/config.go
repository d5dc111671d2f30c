package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"crier/platform/env"
)

// Config configures a Member and a Host.
type Config struct {
	LeaseTTL          time.Duration `env:"LEASE_TTL, default=10s" doc:"How long a process that does not renew its lease keeps its shards."`
	HeartbeatInterval time.Duration `env:"HEARTBEAT_INTERVAL, default=2s" doc:"How often a process renews its lease."`
	Roles             []string      `env:"ROLES, default=edge,worker" doc:"What this process does: edge answers requests, worker publishes."`
	Listen            string        `env:"CLUSTER_LISTEN" doc:"Address where other processes reach this one's actors, host:port; alone when not set."`
	Advertise         string        `env:"CLUSTER_ADVERTISE" doc:"The same address as the others see it, when it differs."`
	Cert              string        `env:"CLUSTER_CERT" doc:"Certificate of this process for the others, a PEM file; needed off loopback."`
	Key               string        `env:"CLUSTER_KEY" doc:"Key of that certificate, a PEM file."`
	CA                string        `env:"CLUSTER_CA" doc:"Who signs the certificates of the processes, a PEM file."`
}

// Has returns whether the process has a role.
func (c Config) Has(role string) bool { return slices.Contains(c.Roles, role) }

// Validate returns every fault of the configuration, joined; errors.As finds an env.Fault in it.
func (c Config) Validate() error {
	var faults []error
	bad := func(name, words string) { faults = append(faults, env.Fault{Name: name, Message: words}) }
	unknown := func(role string) bool { return role != RoleEdge && role != RoleWorker }
	if len(c.Roles) == 0 || slices.ContainsFunc(c.Roles, unknown) {
		bad("ROLES", "must be edge, worker or both, separated by a comma")
	}
	if c.Listen == "" && len(c.Roles) > 0 && !(c.Has(RoleEdge) && c.Has(RoleWorker)) {
		bad("CLUSTER_LISTEN", "is required for a process that has only one of the roles")
	}
	if c.HeartbeatInterval <= 0 || c.LeaseTTL < 2*c.HeartbeatInterval {
		bad("HEARTBEAT_INTERVAL", "must be above zero and at most half of LEASE_TTL, or the shards are lost between two beats")
	}
	if c.Advertise != "" && c.Listen == "" {
		bad("CLUSTER_ADVERTISE", "has no effect without CLUSTER_LISTEN")
	}
	host, _, err := hostPort(c.Listen)
	if c.Listen != "" && err != nil {
		bad("CLUSTER_LISTEN", "must be host:port")
	}
	if _, _, err := hostPort(c.Advertise); c.Advertise != "" && err != nil {
		bad("CLUSTER_ADVERTISE", "must be host:port")
	}
	if c.Listen != "" && err == nil && !loopback(host) && (c.Cert == "" || c.Key == "" || c.CA == "") {
		bad("CLUSTER_CERT", "and CLUSTER_KEY and CLUSTER_CA are required when CLUSTER_LISTEN is not a loopback "+
			"address: anyone who reaches it could otherwise give orders")
	}
	return errors.Join(faults...)
}

// callLimit returns the longest that one statement of the heartbeat may take. A heartbeat that finds its connection
// dead takes three times as long, to detect that, to connect and to repeat the statement, and still renews the lease
// before it expires. That does not hold for leases under three seconds, which are for tests.
func (c Config) callLimit() time.Duration {
	return min(max((c.LeaseTTL-c.HeartbeatInterval)/3, shortestCall), longestCall)
}

const (
	shortestCall = 500 * time.Millisecond
	longestCall  = 5 * time.Second
)

// hostPort parses "host:port" with a numeric port.
func hostPort(address string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(p, 10, 16)
	return host, int(n), err
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// tls returns the configuration of both ends of a connection, which present a certificate signed by the CA, or nil when
// no certificate is configured. The error is an env.Fault.
func (c Config) tls() (*tls.Config, error) {
	if c.Cert == "" && c.Key == "" && c.CA == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, env.Fault{Name: "CLUSTER_CERT", Message: "or CLUSTER_KEY cannot be read: " + err.Error()}
	}
	pem, err := os.ReadFile(c.CA)
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		return nil, env.Fault{Name: "CLUSTER_CA", Message: "must be a PEM file with the certificates of who signs"}
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}, nil
}
