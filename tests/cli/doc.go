// Package cli tests the commands of the built binary.
package cli
