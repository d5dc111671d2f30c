package boot

import (
	"crier/apps/edge/oauth"
	"crier/oidc/client"
	"crier/oidc/grant"
)

// The OAuth server implements the edge's ports.
var (
	_ oauth.Clients = (*client.Clients)(nil)
	_ oauth.Apps    = (*client.Clients)(nil)
	_ oauth.Grants  = (*grant.Grants)(nil)
	_ oauth.Devices = (*grant.Grants)(nil)
)
