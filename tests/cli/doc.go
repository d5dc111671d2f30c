// Package cli tests the built binary as people run it.
package cli
