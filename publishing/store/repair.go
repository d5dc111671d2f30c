package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

// A claim whose answer was lost may have been stored all the same. Nobody knows its tokens, so nothing of it was sent.
const giveBack = `-- publishing.GiveBack
with lost as (
  select p.id from post p where p.shard = any ($1::smallint[]) and p.state = 'PUBLISHING' and p.claim_holder = $2 and p.claim_round = any ($3::bigint[])
  for no key update of p skip locked
), back as (
  update post p set state = case when p.deleted_at is null then 'QUEUE' else 'ERROR' end,
    error = case when p.deleted_at is not null then 'The post was deleted while it was being published.' end,
    error_code = case when p.deleted_at is not null then case when p.maybe_sent then 'outcome_unknown' else 'deleted' end end,
    outcome_unknown = p.deleted_at is not null and p.maybe_sent,
    phase = null, claim_token = null, claim_holder = null, claim_until = null, attempt = greatest(p.attempt - 1, 0), committing_at = null, updated_at = now()
  from lost where p.id = any (array[lost.id]) returning p.org_id, p.id, p.channel_id, p.state
), free as (
  update channel_queue q set busy_post = null from back where q.channel_id = any (array[back.channel_id]) and q.busy_post = back.id and back.state = 'ERROR'
), told as (
  insert into post_event (org_id, post_id, event, node, reason) select org_id, id, 'returned', $4, 'the answer to its claim was lost' from back
)
select distinct org_id from back`

// GiveBack returns to the queue what claims of this process took whose answer it never got, by the numbers of those
// claims. It returns whose posts they are.
func (s *Store) GiveBack(ctx context.Context, l publishing.Lease, numbers []int64, node string) (orgs []tenancy.OrgID, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(giveBack, l.Shards, l.Holder, numbers, node).Query(into(&orgs, pgx.RowTo[tenancy.OrgID]))
	})
	return orgs, err
}

// The channel's hold is what its posts say: the one that is on its way, if there is one.
const holdRepair = `-- publishing.HoldRepair
update channel_queue q set busy_post = h.id
from (select c.channel_id, (select p.id from post p where p.channel_id = any (array[c.channel_id]) and p.state in ('PUBLISHING', 'UNKNOWN')) as id
  from channel_queue c where c.org_id = $1 and c.channel_id > $2 order by c.channel_id limit 1) h
where q.channel_id = any (array[h.channel_id]) and h.id is not null and q.busy_post is distinct from h.id`

const channelSetAside = `-- publishing.ChannelSetAside
with aside as (
  update channel_queue q set not_before = now() + $3 * interval '1 millisecond'
  from (select c.channel_id from channel_queue c where c.org_id = $1 and c.channel_id > $2 order by c.channel_id limit 1) n
  where q.channel_id = any (array[n.channel_id]) returning q.org_id, q.channel_id
), told as (
  insert into post_event (org_id, post_id, event, node, reason)
  select a.org_id, h.id, 'set_aside', $4, $5 from aside a cross join lateral (
    select p.id from post p where p.channel_id = a.channel_id and p.state = 'QUEUE' and p.deleted_at is null order by p.due, p.seq limit 1) h
)
select channel_id from aside`

// RepairHold makes the hold of an organization's first channel after one follow from its posts; true means that it
// did not.
func (s *Store) RepairHold(ctx context.Context, org tenancy.OrgID, after publishing.ChannelID) (bool, error) {
	return s.clockRow(ctx, holdRepair, org, after.UUID())
}

// SetAsideChannel keeps an organization's first channel after one from being claimed for a while, and writes the
// reason into the timeline of its first post. It returns the channel.
func (s *Store) SetAsideChannel(ctx context.Context, org tenancy.OrgID, after publishing.ChannelID, pause time.Duration, reason, node string) (c publishing.ChannelID, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(channelSetAside, org, after.UUID(), pause.Milliseconds(), node, reason).QueryRow(func(row pgx.Row) error { return row.Scan(&c) })
	})
	return c, err
}
