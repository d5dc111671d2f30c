// Package all is the list of connectors: one line each.
package all

import (
	"crier/publishing/connector"
	"crier/publishing/connector/bluesky"
	"crier/publishing/connector/nostr"
	"crier/publishing/connector/sandbox"
)

// New makes every connector of this instance. The sandbox is among them only where its address is given; way leads to that address and is the sandbox's alone.
func New(sandboxURL string, way connector.HTTP) []connector.Connector {
	out := []connector.Connector{bluesky.New(), nostr.New()}
	if sandboxURL != "" {
		out = append(out, sandbox.New(sandbox.Config{URL: sandboxURL, HTTP: way}))
	}
	return out
}
