// Package e2e runs the built binary against real platforms, and kills it at exact points of publishing.
package e2e
