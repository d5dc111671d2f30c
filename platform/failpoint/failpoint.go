//go:build !crash

// Package failpoint lets a test stop this process at a named point, or make it panic there. Its functions do nothing
// without the build tag crash.
package failpoint

// At marks a named point that a piece of work has reached. It does nothing in this build.
func At(_, _ string) {}

// Panic marks a named point that was reached with a text. It does nothing in this build.
func Panic(_, _ string) {}
