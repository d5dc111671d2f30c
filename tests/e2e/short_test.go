//go:build !long

package e2e

// allCrashes is false without the build tag long: a selection of the crash cases runs.
const allCrashes = false
