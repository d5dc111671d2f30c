package access

import (
	"context"
	"errors"
	"strings"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	accessstore "crier/publishing/access/store"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/tenancy"
)

// Channel returns a connected channel with its sealed credential. It returns pgx.ErrNoRows if there
// is no such channel. Any other error is pg.ErrOrgBusy or a Postgres error.
func (k *Refresher) Channel(
	ctx context.Context, org tenancy.OrgID, channel publishing.ChannelID,
) (db.Access, error) {
	return accessstore.ChannelAccess(ctx, k.db, org, channel)
}

// Find is like Channel, but takes the channel id in the form sent by the client. It converts errors
// to faults with the given op. If the organization has no such channel, it returns NotFound.
func (k *Refresher) Find(
	ctx context.Context, org tenancy.OrgID, op, channel string,
) (db.Access, error) {
	parsed, ok := id.Parse[publishing.ChannelTag](channel)
	if !ok {
		return db.Access{}, publishing.NoChannel(op)
	}
	a, err := k.Channel(ctx, org, parsed)
	if pg.IsNoRows(err) {
		return a, publishing.NoChannel(op)
	}
	return a, pg.Fault(op, err)
}

// Fault converts an error from a platform call to a fault.
func Fault(op string, err error) error {
	if fault.Is(err, fault.RateLimited) {
		return err
	}
	var e *connector.Error
	if !errors.As(err, &e) {
		return fault.Wrap(fault.Upstream, op, "The request to the platform failed.", err)
	}
	public := strings.TrimSpace(e.Public)
	switch {
	case e.Kind == connector.KindReauth || e.Kind == connector.KindDisconnect:
		return fault.Wrap(fault.Unauthenticated, op, public, err)
	case e.Kind == connector.KindContent:
		return fault.Wrap(fault.Invalid, op, public, err)
	default:
		return fault.Wrap(fault.Upstream, op, public, err)
	}
}
