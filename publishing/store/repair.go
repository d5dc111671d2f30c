package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

//go:embed sql/give_back_claims.sql
var giveBackClaims string

// GiveBack returns to the queue what claims of this process took whose answer it never got, by the numbers of those
// claims. It returns whose posts they are.
func (s *Store) GiveBack(ctx context.Context, l publishing.Lease, numbers []int64, node string) (orgs []tenancy.OrgID, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(giveBackClaims, l.Shards, l.Holder, numbers, node).Query(into(&orgs, pgx.RowTo[tenancy.OrgID]))
	})
	return orgs, err
}

// The channel's hold is what its posts say: the one that is on its way, if there is one.
const holdRepair = `-- publishing.HoldRepair
update channel_queue q set busy_post = h.id
from (select c.channel_id, (select p.id from post p where p.channel_id = any (array[c.channel_id]) and p.state in ('PUBLISHING', 'UNKNOWN')) as id
  from channel_queue c where c.org_id = $1 and c.channel_id > $2 order by c.channel_id limit 1) h
where q.channel_id = any (array[h.channel_id]) and h.id is not null and q.busy_post is distinct from h.id`

//go:embed sql/set_aside_channel.sql
var setAsideChannel string

// RepairHold makes the hold of an organization's first channel after one follow from its posts; true means that it
// did not.
func (s *Store) RepairHold(ctx context.Context, org tenancy.OrgID, after publishing.ChannelID) (bool, error) {
	return s.clockRow(ctx, holdRepair, org, after.UUID())
}

// SetAsideChannel keeps an organization's first channel after one from being claimed for a while, and writes the
// reason into the timeline of its first post. It returns the channel.
func (s *Store) SetAsideChannel(ctx context.Context, org tenancy.OrgID, after publishing.ChannelID, pause time.Duration, reason, node string) (c publishing.ChannelID, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(setAsideChannel, org, after.UUID(), pause.Milliseconds(), node, reason).QueryRow(func(row pgx.Row) error { return row.Scan(&c) })
	})
	return c, err
}
