// Package sandboxtest runs the sandbox platform in the test's process.
package sandboxtest

import (
	"context"
	"log/slog"
	"testing"

	"crier/apps/sim/sandbox"
)

// Start runs a sandbox with an empty journal until the test ends, and returns its URL.
func Start(t testing.TB) string {
	t.Helper()
	platform, err := sandbox.Open(t.TempDir(), sandbox.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := sandbox.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- platform.Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the sandbox: %v", err)
		}
	})
	return "http://" + ln.Addr().String()
}
