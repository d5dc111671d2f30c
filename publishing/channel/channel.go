// Package channel connects platform accounts, offers the tools of their platforms, and disconnects
// them.
package channel

import (
	"context"
	"log/slog"
	"time"

	"crier/platform/clock"
	"crier/platform/env"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/limit"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/access"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/tenancy"
)

// Config configures the use cases. The program sets BaseURL and PlatformTimeout; they are not read
// from the environment.
type Config struct {
	// BaseURL is the public address of this instance.
	BaseURL string
	// PlatformTimeout limits the sign-in of a connect, including all of its calls.
	PlatformTimeout time.Duration
	// MaxChannels does not count disconnected channels. An account can always be reconnected.
	MaxChannels int `env:"ORG_MAX_CHANNELS, default=1000" doc:"Channels that one organization may have, at most 10000."`
}

// Validate returns every fault of the configuration, joined; errors.As finds an env.Fault in it.
func (c Config) Validate() error {
	var faults env.Faults
	faults.Number("ORG_MAX_CHANNELS", int64(c.MaxChannels), 1, publishing.MaxChannels)
	return faults.Err()
}

// Deps holds the dependencies of New. Only Quota is optional.
type Deps struct {
	DB         *db.DB
	Keyring    *secret.Keyring
	Connectors *connector.Registry
	// Access opens and refreshes credentials.
	Access *access.Keeper
	HTTP   connector.HTTP
	Clock  clock.Clock
	// Waker wakes an organization after one of its channels is reconnected.
	Waker publishing.Waker
	Log   *slog.Logger
	// Quota limits the channels of an organization. It is nil on an instance without plans.
	Quota   db.Quota
	Posts   Posts
	Notices Notices
	// Disowned is called after the person who granted access has disconnected a channel, to mail
	// the administrators. If it is nil, nobody is mailed.
	Disowned func(ctx context.Context, d publishing.Disowned)
}

// Channels implements the use cases of channels. It is safe for concurrent use.
type Channels struct {
	cfg  Config
	deps Deps
	db   *db.DB
	// connects limits the concurrent connects of each organization in this process.
	connects *limit.PerKey[tenancy.OrgID]
}

// New returns the use cases of channels. A process should create only one, because each has its own
// limit of connects in progress.
func New(cfg Config, deps Deps) *Channels {
	return &Channels{cfg: cfg, deps: deps, db: deps.DB, connects: limit.New[tenancy.OrgID](connectsAtOnce)}
}

// Catalogue returns the descriptors of all connectors of this instance, in the order of their
// identifiers.
func (s *Channels) Catalogue() []connector.Descriptor {
	var out []connector.Descriptor
	for _, c := range s.deps.Connectors.All() {
		out = append(out, c.Describe())
	}
	return out
}

// List returns the channels of the organization or, if customer is not empty, those of one
// customer. If there is no such customer, it returns none. Like every method, it returns
// Unavailable while the database is away.
func (s *Channels) List(ctx context.Context, p tenancy.Principal, customer string) ([]publishing.Channel, error) {
	parsed, ok := id.Parse[publishing.CustomerTag](customer)
	if customer != "" && !ok {
		return nil, nil
	}
	out, err := channelstore.Channels(ctx, s.db, p.Org, parsed)
	return out, pg.Fault("publishing.ListChannels", err)
}

// Disconnect deletes the credential and the unpublished posts of a channel. Published posts remain,
// both here and on the platform. It returns NotFound if there is no such channel.
func (s *Channels) Disconnect(ctx context.Context, p tenancy.Principal, channel string) error {
	const op = "publishing.Disconnect"
	none := fault.New(fault.NotFound, op, "There is no such channel.")
	parsed, ok := id.Parse[publishing.ChannelTag](channel)
	if !ok {
		return none
	}
	found := false
	err := s.db.InOrgAs(ctx, p, func(tx *db.Tx) (err error) {
		found, err = channelstore.Disconnect(ctx, tx, parsed, s.deps.Posts.EndOfChannel)
		if err != nil || !found {
			return err
		}
		return s.db.Audit(ctx, tx, p, tenancy.ActionChannelDeleted, channel)
	})
	if err != nil {
		return db.Fault(op, err)
	}
	if !found {
		return none
	}
	return nil
}

// Customers returns the customers of the organization, by name.
func (s *Channels) Customers(ctx context.Context, p tenancy.Principal) ([]publishing.Customer, error) {
	out, err := channelstore.Customers(ctx, s.db, p.Org)
	return out, pg.Fault("publishing.Customers", err)
}
