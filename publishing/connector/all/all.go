// Package all is the list of connectors: one line each.
package all

import (
	"crier/publishing/connector"
	"crier/publishing/connector/bluesky"
	"crier/publishing/connector/nostr"
	"crier/publishing/connector/sandbox"
	"crier/publishing/connector/sandboxoauth"
)

// New returns every connector of this instance. The two of the sandbox are among them only when sandboxURL is given; way
// makes the requests to that address, and only those.
func New(sandboxURL string, way connector.HTTP) []connector.Connector {
	out := []connector.Connector{bluesky.New(), nostr.New()}
	if sandboxURL != "" {
		out = append(out, sandbox.New(sandbox.Config{URL: sandboxURL, HTTP: way}),
			sandboxoauth.New(sandboxoauth.Config{URL: sandboxURL, HTTP: way}))
	}
	return out
}
