//go:build !long

package e2e

// everything is left to the build tag long; a selection runs without it.
const everything = false
