// Package grant manages the permissions that people grant to agents, and the codes and tokens
// issued under these grants. It also authenticates requests that carry access tokens.
package grant

import (
	"context"
	"errors"
	"time"

	"crier/oidc"
	grantstore "crier/oidc/grant/store"
	"crier/platform/clock"
	"crier/platform/env"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/ratelimit"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tenancy/db"
)

// Config configures Grants.
type Config struct {
	// AccessTTL is how long an access token works. A long-lived application's token works until its
	// grant ends.
	AccessTTL time.Duration `env:"OAUTH_ACCESS_TTL, default=1h" doc:"How long an agent's access token works before it must be refreshed."`

	// BaseURL is the service's URL, without a trailing slash. It comes from the edge settings.
	BaseURL string
}

// Validate returns all faults in the settings as one joined error.
func (c Config) Validate() error {
	var faults env.Faults
	faults.Duration("OAUTH_ACCESS_TTL", c.AccessTTL, time.Second, 24*time.Hour)
	return faults.Err()
}

// Clients finds clients.
type Clients interface {
	// Find returns the client with the given client_id, which comes from a visitor's request. It
	// returns an oidc.Error with InvalidClient if there is no such client, and RateLimited if too
	// many metadata documents have been fetched.
	Find(ctx context.Context, clientID string, from tenancy.Source) (oidc.Client, error)
	// ByID returns a client, or pgx.ErrNoRows.
	ByID(ctx context.Context, tx *db.GateTx, client tenancy.AgentID) (oidc.Client, error)
	// MarkApproved records that a person has approved a client. It returns pgx.ErrNoRows if there
	// is no such client.
	MarkApproved(ctx context.Context, tx *db.GateTx, client tenancy.AgentID) error
}

// Catalog looks up the channels and customers of organizations.
type Catalog interface {
	// Unknown returns the given channel ids and customer ids that do not exist in the principal's
	// organization.
	Unknown(ctx context.Context, p tenancy.Principal, channels, customers []string) (
		noChannels, noCustomers []string, err error)
}

// Deps are the dependencies of New.
type Deps struct {
	DB      *db.DB
	Clock   clock.Clock
	Clients Clients
	// Catalog is nil in programs that do not publish posts. These programs accept any well-formed
	// id.
	Catalog Catalog
	// Revocations is nil in a process that does not call credential.Listen. Such a process caches
	// access tokens for only five seconds.
	Revocations credential.Revocations
}

// Grants manages grants and their tokens. It is safe for concurrent use.
type Grants struct {
	cfg     Config
	db      *db.DB
	clock   clock.Clock
	clients Clients
	catalog Catalog
	cache   *credential.Cache[grantstore.FoundToken]
	// guesses counts the device codes that each person has entered. starts counts device log-ins
	// per network and in total.
	guesses *ratelimit.Windows[tenancy.PersonID]
	starts  *ratelimit.Windows[string]
}

// maxCounted is the maximum number of people or networks tracked at a time.
const maxCounted = 10_000

// New returns a Grants with an empty cache.
func New(cfg Config, d Deps) *Grants {
	s := &Grants{
		cfg: cfg, db: d.DB, clock: d.Clock, clients: d.Clients, catalog: d.Catalog,
		guesses: ratelimit.NewWindows[tenancy.PersonID](maxCounted), starts: ratelimit.NewWindows[string](maxCounted),
	}
	s.cache = credential.NewCache(d.Clock, d.Revocations, func(ctx context.Context, hashes [][]byte) (
		map[string]grantstore.FoundToken, error) {
		return grantstore.TokensByHash(ctx, s.db, hashes, s.clock.Now())
	})
	return s
}

// Cached returns the cache of access tokens, so that the caller can remove revoked tokens from it.
func (s *Grants) Cached() credential.Revocable { return s.cache }

// tokenLength is the number of random base62 characters after a prefix. Together, they have 256
// bits of entropy.
const tokenLength = 43

func newToken(op, prefix string) (plain string, hash []byte, err error) {
	plain, err = secret.Token(prefix, tokenLength)
	if err != nil {
		return "", nil, fault.Wrap(fault.Internal, op, "", err)
	}
	return plain, secret.HashToken(plain), nil
}

// result returns the oidc.Error that err wraps, or err itself if it wraps none.
func result(err error) error {
	var refused *oidc.Error
	if errors.As(err, &refused) {
		return refused
	}
	return err
}

// confirmMember returns an oidc.Error with InvalidGrant unless the person is still a member of the
// transaction's organization. A person who has left must not receive new tokens. A member's current
// access is checked whenever a token is used.
//
// confirmMember locks the organization's permissions. It must be called before the transaction
// locks anything else.
func confirmMember(ctx context.Context, tx *db.OrgTx, person tenancy.PersonID) error {
	return tx.AsGate(ctx, func(q pg.Querier) error {
		if err := db.LockAuthority(ctx, q, tx.Org, false); err != nil {
			return err
		}
		m, err := db.ConfirmMember(ctx, q, tx.Org, person)
		if pg.IsNoRows(err) || err == nil && m.Disabled {
			return oidc.Fail(oidc.InvalidGrant, "The person is no longer a member of the organization.")
		}
		return err
	})
}

// bySession returns Forbidden unless the principal is a person in a session.
func bySession(op string, p tenancy.Principal) error {
	if p.Via == tenancy.ViaSession && !p.Person.IsZero() {
		return nil
	}
	return fault.New(fault.Forbidden, op, "Only a signed-in person may do this.")
}
