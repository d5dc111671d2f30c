package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

//go:embed sql/give_back_claims.sql
var giveBackClaims string

// GiveBack requeues posts that were claimed by this process in statements whose responses were
// lost. numbers identifies these statements; see Claim. None of the posts has been sent. GiveBack
// returns the organizations of the posts. After a Postgres error, it can be called again with the
// same numbers.
func GiveBack(
	ctx context.Context, d *db.DB, l dispatch.Lease, numbers []int64, node string,
) (orgs []tenancy.OrgID, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(giveBackClaims, l.Shards, l.Holder, numbers, node).Query(db.Into(&orgs, pgx.RowTo[tenancy.OrgID]))
	})
	return orgs, err
}

// holdRepair changes a channel only if one of the channel's posts is claimed but does not hold the
// channel.
const holdRepair = `-- publishing.HoldRepair
update channel_queue q set busy_post = h.id
from (
  select c.channel_id, (
    select p.id from post p
    where p.channel_id = any (array[c.channel_id]) and p.state in ('PUBLISHING', 'UNKNOWN')) as id
  from channel_queue c where c.org_id = $1 and c.channel_id > $2 order by c.channel_id limit 1) h
where q.channel_id = any (array[h.channel_id]) and h.id is not null and q.busy_post is distinct from h.id`

// RepairHold checks the organization's first channel after the given one, in id order. If a post on
// that channel is claimed, RepairHold makes the post hold the channel. It reports whether it
// changed the channel. If it returns a Postgres error, do not rely on the result.
func RepairHold(ctx context.Context, d *db.DB, org tenancy.OrgID, after publishing.ChannelID) (bool, error) {
	return clockRow(ctx, d, holdRepair, org, after.UUID())
}

//go:embed sql/set_aside_channel.sql
var setAsideChannel string

// SetAsideChannel sets aside the organization's first channel after the given one, in id order. It
// prevents claims on that channel for the duration pause, adds reason to the timeline of the first
// post in the channel's queue, and returns the channel. It returns pgx.ErrNoRows if there is no
// such channel.
func SetAsideChannel(
	ctx context.Context, d *db.DB, org tenancy.OrgID, after publishing.ChannelID, pause time.Duration, reason,
	node string,
) (c publishing.ChannelID, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(setAsideChannel, org, after.UUID(), pause.Milliseconds(), node, reason).
			QueryRow(func(row pgx.Row) error { return row.Scan(&c) })
	})
	return c, err
}
