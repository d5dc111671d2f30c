package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"crier/platform/env"
)

// Config configures a Member and a Host. All processes' certificates must be signed by the same
// authority.
type Config struct {
	// LeaseTTL is how long a process keeps its shards after its last heartbeat.
	LeaseTTL time.Duration `env:"LEASE_TTL, default=10s" doc:"How long a process keeps its shards without a heartbeat."`
	// HeartbeatInterval is at most half of LeaseTTL.
	HeartbeatInterval time.Duration `env:"HEARTBEAT_INTERVAL, default=2s" doc:"How often a process renews its lease."`
	// Roles are RoleEdge, RoleWorker or both.
	Roles []string `env:"ROLES, default=edge,worker" doc:"What this process does: edge (serves requests), worker (publishes posts), or both."`
	// Listen is a host:port address. If it is empty, other processes cannot send messages to this
	// process's actors. Example: 10.0.0.7:4901
	Listen string `env:"CLUSTER_LISTEN" doc:"host:port at which other processes reach this one; not needed for a single process."`
	// Advertise is the host:port address at which other processes reach this one. It defaults to
	// Listen.
	Advertise string `env:"CLUSTER_ADVERTISE" doc:"host:port at which other processes reach this one, if different from CLUSTER_LISTEN."`
	// Cert, Key and CA are required unless Listen is on loopback.
	Cert string `env:"CLUSTER_CERT" doc:"PEM file with this process's certificate; required unless all processes are on loopback."`
	Key  string `env:"CLUSTER_KEY" doc:"PEM file with the private key of CLUSTER_CERT."`
	CA   string `env:"CLUSTER_CA" doc:"PEM file with the certificate of the authority that issued all processes' certificates."`
}

// Has reports whether the process has the given role. A process without RoleWorker owns no shards,
// and a process without RoleEdge has no public listener.
func (c Config) Has(role string) bool { return slices.Contains(c.Roles, role) }

const (
	minLeaseTTL = time.Second
	// maxLeaseTTL limits how long a dead process's posts wait for a new owner.
	maxLeaseTTL = 10 * time.Minute
)

// Validate returns all configuration faults as one joined error. errors.As can extract an env.Fault
// from it.
func (c Config) Validate() error {
	var faults env.Faults
	faults.Duration("LEASE_TTL", c.LeaseTTL, minLeaseTTL, maxLeaseTTL)
	if c.HeartbeatInterval <= 0 || c.LeaseTTL >= minLeaseTTL && c.LeaseTTL < 2*c.HeartbeatInterval {
		faults.Add("HEARTBEAT_INTERVAL", "must be above zero and at most half of LEASE_TTL, "+
			"or the shards are lost between two heartbeats")
	}
	if !c.validRoles() {
		faults.Add("ROLES", "must be edge, worker or both, separated by a comma")
	}
	c.validateAddresses(&faults)
	return faults.Err()
}

func (c Config) validRoles() bool {
	unknown := func(role string) bool { return role != RoleEdge && role != RoleWorker }
	return len(c.Roles) > 0 && !slices.ContainsFunc(c.Roles, unknown)
}

func (c Config) validateAddresses(faults *env.Faults) {
	if c.Advertise != "" {
		if _, _, err := hostPort(c.Advertise); err != nil {
			faults.Add("CLUSTER_ADVERTISE", "must be host:port")
		}
	}
	if c.Listen == "" {
		if c.validRoles() && !(c.Has(RoleEdge) && c.Has(RoleWorker)) {
			faults.Add("CLUSTER_LISTEN", "is required for a process that has only one of the roles")
		}
		if c.Advertise != "" {
			faults.Add("CLUSTER_ADVERTISE", "has no effect without CLUSTER_LISTEN")
		}
		return
	}
	host, _, err := hostPort(c.Listen)
	if err != nil {
		faults.Add("CLUSTER_LISTEN", "must be host:port")
		return
	}
	if !loopback(host) && (c.Cert == "" || c.Key == "" || c.CA == "") {
		faults.Add("CLUSTER_CERT", "and CLUSTER_KEY and CLUSTER_CA are required when CLUSTER_LISTEN is not a loopback "+
			"address: otherwise anyone who can reach it could send commands")
	}
}

// callLimit returns the timeout for a single heartbeat statement. On a dead connection, a heartbeat
// takes three times as long: the statement times out, the process reconnects, and the statement
// runs again. Even then, the lease is renewed before it expires, unless the lease is shorter than
// three seconds. Leases that short are meant for tests.
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

// tls returns the TLS configuration for both ends of a connection. Each end must present a
// certificate signed by the CA. tls returns nil if no certificate is configured. Any error is an
// env.Fault.
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
		return nil, env.Fault{
			Name: "CLUSTER_CA", Message: "must be a PEM file with the certificates of the signing authority",
		}
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}, nil
}
