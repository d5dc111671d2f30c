package outbound

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

const probeTimeout = time.Second

// Refuses tells whether a machine answers that nothing listens at an address, host:port. Silence, a name that does not resolve or a network that cannot
// be reached prove nothing, and are false. It is for addresses that this service's own processes advertise, never for a user's, and sends no byte.
func Refuses(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close() // it was only to see whether somebody answers
		return false
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
