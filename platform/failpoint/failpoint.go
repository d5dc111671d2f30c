//go:build !crash

// Package failpoint lets a test stop this process at a named point, or make it panic there. Its
// functions do nothing without the crash build tag.
package failpoint

// At does nothing in this build. With the crash build tag, it stops the process if a test requests
// it.
func At(_, _ string) {}

// Panic does nothing in this build. With the crash build tag, it panics if the text contains the
// words "panic at" followed by the point.
func Panic(_, _ string) {}
