package boot

import (
	"fmt"
	"log/slog"
	"syscall"

	"crier/platform/fault"
)

const (
	leastDescriptors = 1024
	// ownDescriptors is the number of file descriptors reserved for databases, files, logs, and
	// connections to other processes.
	ownDescriptors = 512
	// perConnection is the number of file descriptors reserved for each client connection. One is
	// for the connection itself. The other is for a file or a platform connection that a request
	// opens, or that the worker opens to send a post.
	perConnection = 2
	// leastConns is the lowest connection limit that fitConnections sets. Only `dev` can get this
	// low, because `serve` requires leastDescriptors.
	leastConns = 64
)

// descriptorLimit returns how many file descriptors this process can open. The Go runtime has
// already raised the soft limit to the hard limit.
func descriptorLimit() (uint64, error) {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0, fmt.Errorf("the limit of file descriptors cannot be read: %w", err)
	}
	return uint64(r.Cur), nil
}

// checkDescriptors returns Unavailable if the file descriptor limit is too low for the service.
func checkDescriptors(limit uint64) error {
	if limit >= leastDescriptors {
		return nil
	}
	return fault.New(fault.Unavailable, "boot.descriptors", fmt.Sprintf(
		"This process may open %d file descriptors and needs at least %d: "+
			"raise the limit (ulimit -n, LimitNOFILE of systemd, --ulimit nofile of Docker).",
		limit, leastDescriptors))
}

// fitConnections lowers MAX_CONNECTIONS and logs a warning if the file descriptor limit does not
// allow that many connections. Without this, clients could use up all descriptors, and nothing
// could be published.
func (c *Config) fitConnections(limit uint64, log *slog.Logger) {
	most := leastConns
	if limit > ownDescriptors {
		most = int(max(leastConns, min((limit-ownDescriptors)/perConnection, uint64(c.Edge.MaxConns))))
	}
	if most >= c.Edge.MaxConns {
		return
	}
	log.Warn("MAX_CONNECTIONS is more than the limit of file descriptors allows; "+
		"fewer connections are accepted. Raise the limit (ulimit -n) or lower MAX_CONNECTIONS.",
		"MAX_CONNECTIONS", c.Edge.MaxConns, "accepted", most, "descriptors", limit)
	c.Edge.MaxConns = most
}
