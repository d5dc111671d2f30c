// Package all lists the connectors included in this build.
package all

import (
	"crier/publishing/connector"
	"crier/publishing/connector/bluesky"
	"crier/publishing/connector/nostr"
	"crier/publishing/connector/sandbox"
	"crier/publishing/connector/sandboxoauth"
)

// New returns all connectors. The two sandbox connectors are included only if sandboxURL is not
// empty. way is the HTTP client for requests to sandboxURL and is not used for any other URL.
func New(sandboxURL string, way connector.HTTP) []connector.Connector {
	out := []connector.Connector{bluesky.New(), nostr.New()}
	if sandboxURL != "" {
		out = append(out, sandbox.New(sandbox.Config{URL: sandboxURL, HTTP: way}),
			sandboxoauth.New(sandboxoauth.Config{URL: sandboxURL, HTTP: way}))
	}
	return out
}
