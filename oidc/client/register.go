package client

import (
	"context"
	"time"

	"crier/oidc"
	clientstore "crier/oidc/client/store"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
)

const (
	// tokenLength is the number of base62 characters after a prefix; they hold 256 bits.
	tokenLength = 43
	// maxRegistrations is how many clients one network may register per minute. A hosted client may
	// register once for each of its users, from a few addresses.
	maxRegistrations = 120
	// maxUnapproved is how many clients that nobody has approved one network may register per day.
	// Registering the same metadata again does not count.
	maxUnapproved = 2000
)

// Register stores a client. Public clients with the same metadata get the same client id. Every
// other registration is a new client, with a secret that is not shown again.
//
// Register returns an oidc.Error with InvalidRedirectURI or InvalidClientMetadata if the server
// cannot serve the client, and RateLimited if too many clients have registered from the network.
func (s *Clients) Register(ctx context.Context, m oidc.Metadata, from tenancy.Source) (
	out oidc.Registration, err error) {
	const op = "oidc.Register"
	sent, err := m.Registrant()
	if err != nil {
		return out, err
	}
	now := s.clock.Now()
	if v := s.registrations.Take(from.Site, now, maxRegistrations); !v.Allowed {
		return out, tooManyClients(op, v.RetryAfter)
	}
	c, plain, err := newClient(op, sent)
	if err != nil {
		return out, err
	}
	c.Source, c.CreatedAt = from.Site, now
	if c.Public() {
		c.Fingerprint = sent.Fingerprint()
	}
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		out, err = s.register(ctx, tx, op, c)
		return err
	})
	out.Secret = plain
	// The ports of the registered client may differ, which does not matter.
	out.RedirectURIs = sent.RedirectURIs
	return out, err
}

func (s *Clients) register(ctx context.Context, tx *db.GateTx, op string, c clientstore.Client) (
	oidc.Registration, error) {
	if c.Fingerprint != nil {
		known, err := clientstore.FindRegistered(ctx, tx, c.Fingerprint, c.CreatedAt)
		if !pg.IsNoRows(err) {
			return oidc.Registration{Client: known.Client, IssuedAt: known.CreatedAt}, err
		}
	}
	n, err := clientstore.CountRecent(ctx, tx, c.Source, c.CreatedAt.Add(-24*time.Hour), maxUnapproved)
	if err != nil {
		return oidc.Registration{}, err
	}
	if n >= maxUnapproved {
		return oidc.Registration{}, tooManyClients(op, time.Hour)
	}
	stored, err := clientstore.Insert(ctx, tx, c)
	return oidc.Registration{Client: stored.Client, IssuedAt: stored.CreatedAt}, err
}

// newClient returns the described client with ids and, unless it is public, a secret.
func newClient(op string, described oidc.Client) (c clientstore.Client, plain string, err error) {
	c.Client = described
	c.ID = id.New[tenancy.AgentTag]()
	if c.ClientID, err = secret.Token(oidc.ClientPrefix, tokenLength); err != nil {
		return c, "", fault.Wrap(fault.Internal, op, "", err)
	}
	if c.Public() {
		return c, "", nil
	}
	plain, c.Secret, err = newSecret(op)
	return c, plain, err
}

func newSecret(op string) (plain string, hash []byte, err error) {
	plain, err = secret.Token(oidc.SecretPrefix, tokenLength)
	if err != nil {
		return "", nil, fault.Wrap(fault.Internal, op, "", err)
	}
	return plain, secret.HashToken(plain), nil
}

func tooManyClients(op string, wait time.Duration) error {
	return &fault.Error{
		Kind: fault.RateLimited, Op: op, Message: "Too many clients have registered from your network; try again later.",
		RetryAfter: wait,
	}
}
