//go:build !crash

// Package failpoint lets a test stop this process at a named point, or make it panic there; without the build tag crash
// nothing of it exists.
package failpoint

// At is a named point that a piece of work has reached: nothing happens there.
func At(_, _ string) {}

// Panic is a named point in foreign code, reached with a text: nothing happens there.
func Panic(_, _ string) {}
