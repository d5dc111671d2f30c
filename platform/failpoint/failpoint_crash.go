//go:build crash

// Package failpoint lets a test stop this process at a named point, or make it panic there. Its
// functions do nothing without the crash build tag.
package failpoint

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"crier/platform/env"
)

// At stops the process with SIGSTOP if the file named by CRIER_FAILPOINT requests it. The file
// contains the point. To stop only for one piece of work, the point is followed by a space and that
// work. At renames the file, so that each request stops a process only once. Before it stops the
// process, it writes the work to "<file>.hit".
//
// Example request: "committing"
func At(point, work string) {
	file, ok := env.OS()("CRIER_FAILPOINT")
	if !ok || file == "" {
		return
	}
	request, err := os.ReadFile(file)
	want, which, _ := strings.Cut(string(request), " ")
	if err != nil || want != point || which != "" && which != work || os.Rename(file, file+".taken") != nil {
		return // no request for this point, or another goroutine has taken it
	}
	err = errors.Join(os.WriteFile(file+".new", []byte(work), 0o600), os.Rename(file+".new", file+".hit"))
	err = errors.Join(err, syscall.Kill(os.Getpid(), syscall.SIGSTOP))
	if err != nil {
		os.Exit(3) // the test must not mistake this process for a stopped one
	}
}

// Panic panics if the text contains the words "panic at" followed by the point.
func Panic(point, text string) {
	if strings.Contains(text, "panic at "+point) {
		panic("a test asked for a panic at " + point)
	}
}
