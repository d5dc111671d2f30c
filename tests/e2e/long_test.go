//go:build long

package e2e

// everything runs the whole table of crashes.
const everything = true
