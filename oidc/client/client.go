// Package client finds, registers and prunes OAuth clients, which are programs that can request
// access from people. It also manages each organization's static application.
package client

import (
	"context"
	"net/http"

	"golang.org/x/sync/singleflight"

	"crier/oidc"
	clientstore "crier/oidc/client/store"
	"crier/platform/clock"
	"crier/platform/ratelimit"
	"crier/tenancy"
	"crier/tenancy/db"
)

// Deps are the dependencies of New. All are required.
type Deps struct {
	DB    *db.DB
	Clock clock.Clock
	// Fetch fetches metadata documents from URLs that strangers choose. It comes from
	// outbound.Client.Transport.
	Fetch http.RoundTripper
}

// Clients manages clients. It is safe for concurrent use.
type Clients struct {
	db    *db.DB
	clock clock.Clock
	http  http.RoundTripper

	// fetching makes concurrent requests share one fetch of a document.
	fetching singleflight.Group
	// fetches counts document fetches per visitor's network, per host and in total. registrations
	// counts registrations per network.
	fetches, registrations *ratelimit.Windows[string]
}

// maxSources is the maximum number of hosts or networks tracked at a time.
const maxSources = 10_000

// New returns a Clients.
func New(d Deps) *Clients {
	return &Clients{
		db: d.DB, clock: d.Clock, http: d.Fetch,
		fetches: ratelimit.NewWindows[string](maxSources), registrations: ratelimit.NewWindows[string](maxSources),
	}
}

// ByID returns a client, or pgx.ErrNoRows.
func (s *Clients) ByID(ctx context.Context, tx *db.GateTx, client tenancy.AgentID) (oidc.Client, error) {
	c, err := clientstore.ByID(ctx, tx, client)
	return c.Client, err
}

// MarkApproved records, in the caller's transaction, that a person has approved a client, so that
// Prune keeps it. It returns pgx.ErrNoRows if there is no such client.
func (s *Clients) MarkApproved(ctx context.Context, tx *db.GateTx, client tenancy.AgentID) error {
	return clientstore.MarkApproved(ctx, tx, client, s.clock.Now())
}
