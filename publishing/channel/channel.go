// Package channel connects and disconnects platform accounts and runs the tools that their
// platforms offer.
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

// Config configures Channels. BaseURL and PlatformTimeout are set by the program and are not read
// from the environment.
type Config struct {
	// BaseURL is this instance's public URL.
	BaseURL string
	// PlatformTimeout limits the duration of one sign-in to a platform, including all of its calls.
	PlatformTimeout time.Duration
	// MaxChannels limits an organization's connected channels. An account that is already connected
	// can always be reconnected.
	MaxChannels int `env:"ORG_MAX_CHANNELS, default=1000" doc:"Maximum number of channels per organization, up to 10000."`
}

// Validate returns all configuration faults as a joined error. errors.As finds an env.Fault in the
// result.
func (c Config) Validate() error {
	var faults env.Faults
	faults.Number("ORG_MAX_CHANNELS", int64(c.MaxChannels), 1, publishing.MaxChannels)
	return faults.Err()
}

// Deps holds the dependencies of New. Only Quota and Disowned are optional.
type Deps struct {
	DB         *db.DB
	Keyring    *secret.Keyring
	Connectors *connector.Registry
	// Access opens and refreshes credentials.
	Access *access.Refresher
	HTTP   connector.HTTP
	Clock  clock.Clock
	// Waker wakes an organization's actor after one of the organization's channels is reconnected.
	Waker publishing.Waker
	Log   *slog.Logger
	// Quota limits an organization's channels. It is nil on an instance without plans.
	Quota   db.Quota
	Posts   Posts
	Notices Notices
	// Disowned emails the administrators after the person who granted access to a channel has
	// disconnected it. If Disowned is nil, no email is sent.
	Disowned func(ctx context.Context, d publishing.Disowned)
}

// Channels connects, lists and disconnects channels. It is safe for concurrent use.
type Channels struct {
	cfg  Config
	deps Deps
	db   *db.DB
	// connects limits each organization's concurrent connection attempts in this process.
	connects *limit.PerKey[tenancy.OrgID]
}

// New returns a Channels. A process should create only one, because each Channels has its own limit
// on concurrent connection attempts.
func New(cfg Config, deps Deps) *Channels {
	return &Channels{cfg: cfg, deps: deps, db: deps.DB, connects: limit.New[tenancy.OrgID](connectsAtOnce)}
}

// Catalogue returns the descriptors of this instance's connectors, ordered by identifier.
func (s *Channels) Catalogue() []connector.Descriptor {
	var out []connector.Descriptor
	for _, c := range s.deps.Connectors.All() {
		out = append(out, c.Describe())
	}
	return out
}

// List returns the organization's channels or, if customer is not empty, that customer's channels.
// For an unknown customer, the list is empty. Like every method that uses the database, List
// returns Unavailable while the database is down.
func (s *Channels) List(ctx context.Context, p tenancy.Principal, customer string) ([]publishing.Channel, error) {
	parsed, ok := id.Parse[publishing.CustomerTag](customer)
	if customer != "" && !ok {
		return nil, nil
	}
	out, err := channelstore.Channels(ctx, s.db, p.Org, parsed)
	return out, pg.Fault("publishing.ListChannels", err)
}

// Disconnect deletes a channel's credential and unpublished posts. Published posts remain, both
// here and on the platform. Disconnect returns NotFound if the channel does not exist, and
// Forbidden for agents.
func (s *Channels) Disconnect(ctx context.Context, p tenancy.Principal, channel string) error {
	const op = "publishing.Disconnect"
	if err := noAgent(op, p); err != nil {
		return err
	}
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

// Customers returns the organization's customers, ordered by name.
func (s *Channels) Customers(ctx context.Context, p tenancy.Principal) ([]publishing.Customer, error) {
	out, err := channelstore.Customers(ctx, s.db, p.Org)
	return out, pg.Fault("publishing.Customers", err)
}
