// Package e2e runs the built binary against real platforms, and kills it at exact points while it
// publishes.
package e2e
