// Package edgetest serves the HTTP server of the edge to tests.
package edgetest

import (
	"context"
	"errors"
	"net"
	"time"

	"crier/apps/edge"
)

// shutdownTime limits the shutdown of a server.
const shutdownTime = 5 * time.Second

// Serve serves s on a free port of this machine and returns the address. stop shuts the server down
// and returns the errors of Shutdown and Listen.
func Serve(s *edge.Server) (address string, stop func() error, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	done := make(chan error, 1)
	go func() { done <- s.Listen(ln) }()
	return ln.Addr().String(), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		return errors.Join(s.Shutdown(ctx), <-done)
	}, nil
}
