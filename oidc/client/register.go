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
	// tokenLength is the number of random base62 characters after a prefix. Together, they have 256
	// bits of entropy.
	tokenLength = 43
	// maxRegistrations is how many clients one network may register per minute. The limit is high
	// because a hosted client may register once per user from only a few addresses.
	maxRegistrations = 120
	// maxUnapproved is how many clients one network may register per day, not counting approved
	// clients. Registering the same public client again does not count.
	maxUnapproved = 2000
)

// Register stores a client and returns it. Public clients with the same metadata share a client id.
// Each registration of a client with a secret creates a new client, and the secret is not shown
// again.
//
// Register returns an oidc.Error with InvalidRedirectURI or InvalidClientMetadata if the metadata
// is invalid or not supported. It returns RateLimited if too many clients have registered from the
// visitor's network.
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
	// The stored client may have been registered with other loopback ports, so return the URIs from
	// this request.
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

// newClient returns the described client with new ids and, unless it is public, a new secret.
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
		Kind: fault.RateLimited, Op: op,
		Message:    "Too many clients have registered from your network; try again later.",
		RetryAfter: wait,
	}
}
