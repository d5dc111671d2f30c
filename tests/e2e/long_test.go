//go:build long

package e2e

// allCrashes is true with the build tag long: all crash cases run.
const allCrashes = true
