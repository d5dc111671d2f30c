// Command crier is the whole service in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"crier/apps/boot"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := boot.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
