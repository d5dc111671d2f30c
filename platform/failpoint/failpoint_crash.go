//go:build crash

// Package failpoint lets a test stop this process at a named point, or make it panic there; without the build tag crash
// nothing of it exists.
package failpoint

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"crier/platform/env"
)

// At stops the process with SIGSTOP when the file that CRIER_FAILPOINT names holds this point, or this point, a space and this work.
// The file is moved aside first, so that one request stops one process once; "<file>.hit" then names the work.
func At(point, work string) {
	file, ok := env.OS()("CRIER_FAILPOINT")
	if !ok || file == "" {
		return
	}
	asked, err := os.ReadFile(file)
	want, which, _ := strings.Cut(string(asked), " ")
	if err != nil || want != point || which != "" && which != work || os.Rename(file, file+".taken") != nil {
		return // nobody asks, or another goroutine was first
	}
	err = errors.Join(os.WriteFile(file+".new", []byte(work), 0o600), os.Rename(file+".new", file+".hit"))
	if err = errors.Join(err, syscall.Kill(os.Getpid(), syscall.SIGSTOP)); err != nil {
		os.Exit(3) // a test that believes in a stop that did not come proves nothing
	}
}

// Panic panics when the text asks for it by the words "panic at" and the name of the point.
func Panic(point, text string) {
	if strings.Contains(text, "panic at "+point) {
		panic("a test asked for a panic at " + point)
	}
}
