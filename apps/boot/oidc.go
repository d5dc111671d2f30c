package boot

import (
	"context"
	"net/http"
	"slices"

	"crier/apps/edge/oauth"
	"crier/oidc/client"
	"crier/oidc/grant"
	"crier/oidc/server"
	"crier/platform/clock"
	"crier/publishing"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tenancy/signin"
)

// OAuth is the OAuth server. It lets users authorize agents to act on their behalf.
type OAuth struct {
	Clients *client.Clients
	Grants  *grant.Grants
	// Server serves the endpoints that clients call; see server.New.
	Server http.Handler
}

// OAuthDeps holds the dependencies of NewOAuth. Catalog and Revocations may be nil.
type OAuthDeps struct {
	Accounts *Accounts
	Clock    clock.Clock
	// Fetch fetches clients' metadata documents; see outbound.Client.Transport.
	Fetch       http.RoundTripper
	Catalog     grant.Catalog
	Revocations credential.Revocations
}

// NewOAuth creates the OAuth server and connects its parts.
func NewOAuth(cfg grant.Config, d OAuthDeps) *OAuth {
	o := &OAuth{Clients: client.New(client.Deps{DB: d.Accounts.DB, Clock: d.Clock, Fetch: d.Fetch})}
	o.Grants = grant.New(cfg, grant.Deps{
		DB: d.Accounts.DB, Clock: d.Clock, Clients: o.Clients, Catalog: d.Catalog, Revocations: d.Revocations,
	})
	o.Server = server.New(server.Deps{
		BaseURL: cfg.BaseURL, Clients: o.Clients, Grants: o.Grants, Keys: d.Accounts, Log: d.Accounts.log,
	})
	return o
}

// ports returns the OAuth server's ports for the edge, with the prover from accounts and a list of
// the identity providers.
func (o *OAuth) ports(accounts *Accounts, providers *signin.Providers) oauth.Ports {
	out := oauth.Ports{
		Clients: o.Clients, Grants: o.Grants, Apps: o.Clients, Devices: o.Grants, Tokens: o.Server,
		Prover: accounts.proofs,
	}
	for _, n := range providers.Names() {
		out.Providers = append(out.Providers, oauth.Provider{ID: string(n.Provider), Label: n.Label})
	}
	return out
}

// catalogOf gives the OAuth server access to organizations' channels and customers. It holds the
// App because the publishing use cases are created later.
type catalogOf struct{ app *App }

// Unknown implements grant.Catalog.
func (c catalogOf) Unknown(ctx context.Context, p tenancy.Principal, channels, customers []string) (
	noChannels, noCustomers []string, err error) {
	known, err := c.app.Channels.List(ctx, p, "")
	if err != nil {
		return nil, nil, err
	}
	groups, err := c.app.Channels.Customers(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	noChannels = slices.DeleteFunc(slices.Clone(channels), func(id string) bool {
		return slices.ContainsFunc(known, func(k publishing.Channel) bool { return k.ID.String() == id })
	})
	noCustomers = slices.DeleteFunc(slices.Clone(customers), func(id string) bool {
		return slices.ContainsFunc(groups, func(g publishing.Customer) bool { return g.ID.String() == id })
	})
	return noChannels, noCustomers, nil
}
