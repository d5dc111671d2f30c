package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

var channelsByID = `-- publishing.ChannelsByID
select ` + db.ChannelColumns + `
from channel c left join customer u on u.org_id = c.org_id and u.id = c.customer_id
where c.deleted_at is null and c.id = any($1)`

const channelsVisible = `-- publishing.ChannelsVisible
select count(*) from channel c where c.id = any ($1)`

// CountChannels returns how many of the given channels exist and are visible, including
// disconnected channels. It returns pg.ErrOrgBusy or any Postgres error.
func CountChannels(
	ctx context.Context, d *db.DB, org tenancy.OrgID, channels []publishing.ChannelID,
) (n int, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(channelsVisible, db.UUIDs(channels)).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	})
	return n, err
}

// Known holds the existing channels and media that a create command names.
type Known struct {
	Channels []publishing.Channel
	Media    []publishing.Medium
}

// Lookup reads the given channels and media of an organization in one round trip. A medium can be
// given by its id or by its key. Channels and media that do not exist are missing from the result.
// Lookup returns pg.ErrOrgBusy or any Postgres error.
func Lookup(
	ctx context.Context, d *db.DB, org tenancy.OrgID, channels []publishing.ChannelID, media []publishing.MediaID,
	keys []string,
) (k Known, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(channelsByID, db.UUIDs(channels)).Query(db.Into(&k.Channels, db.ScanChannel))
		b.Queue(db.MediaFind, db.UUIDs(media), keys).Query(db.Into(&k.Media, db.ScanMedium))
	})
	return k, err
}
