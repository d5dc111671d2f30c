//go:build crash

// Package halt lets a test stop this process at a named point; without the build tag crash nothing of it exists.
package halt

import (
	"os"
	"strings"
	"syscall"

	"crier/platform/env"
)

// At stops the process with SIGSTOP when the file that CRIER_HALT names holds the name of this point.
// The file is moved aside to "<file>.hit" first, so that one request stops one process once.
func At(point string) {
	file, ok := env.OS()("CRIER_HALT")
	if !ok || file == "" {
		return
	}
	asked, err := os.ReadFile(file)
	if err != nil || strings.TrimSpace(string(asked)) != point || os.Rename(file, file+".hit") != nil {
		return // nobody asks, or another goroutine was first
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		os.Exit(3) // a test that believes in a stop that did not come proves nothing
	}
}
