// Command install puts the Bluesky PDS into this machine's cache for the tests that start it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"crier/tests/pds"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := pds.Install(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, dir)
}
