package service

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/limit"
	"crier/publishing"
	"crier/publishing/connector"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// Channels are the use cases of channels. It is safe for concurrent use.
type Channels struct {
	core
	// connects limits the calls of platforms of each organization in this process.
	connects *limit.PerKey[tenancy.OrgID]
}

// NewChannels returns the use cases of channels. A process should make one only: each has its own limit of connects in
// progress.
func NewChannels(cfg Config, deps Deps) *Channels {
	return &Channels{core: newCore(cfg, deps), connects: limit.New[tenancy.OrgID](connectsAtOnce)}
}

// Catalogue returns the descriptors of all connectors of this instance, in the order of their identifiers.
func (s *Channels) Catalogue() []connector.Descriptor {
	var out []connector.Descriptor
	for _, c := range s.deps.Connectors.All() {
		out = append(out, c.Describe())
	}
	return out
}

// List returns the channels of the organization, or those of one customer unless customer is empty. An id that names no
// customer has no channels. It returns Unavailable while the database is away, as every method does.
func (s *Channels) List(ctx context.Context, p tenancy.Principal, customer string) ([]publishing.Channel, error) {
	parsed, ok := id.Parse[publishing.CustomerTag](customer)
	if customer != "" && !ok {
		return nil, nil
	}
	out, err := publishingstore.Channels(ctx, s.store, p.Org, parsed)
	return out, internal("publishing.ListChannels", err)
}

// Disconnect deletes the credential of a channel and its unpublished posts. Published posts remain, here and on the
// platform. It returns NotFound.
func (s *Channels) Disconnect(ctx context.Context, p tenancy.Principal, channel string) error {
	const op = "publishing.Disconnect"
	none := fault.New(fault.NotFound, op, "There is no such channel.")
	parsed, ok := id.Parse[publishing.ChannelTag](channel)
	if !ok {
		return none
	}
	found := false
	err := s.inOrgAs(ctx, p, func(tx *publishingstore.Tx) (err error) {
		found, err = publishingstore.Disconnect(ctx, tx, parsed)
		return err
	})
	if err != nil {
		return publicFault(op, err)
	}
	if !found {
		return none
	}
	return nil
}

// Customers returns the customers of the organization by their names.
func (s *Channels) Customers(ctx context.Context, p tenancy.Principal) ([]publishing.Customer, error) {
	out, err := publishingstore.Customers(ctx, s.store, p.Org)
	return out, internal("publishing.Customers", err)
}
