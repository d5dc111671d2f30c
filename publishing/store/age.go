package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
)

// A claim is renewed by every step of its sender; this ends one whose steps never come to the call. Nothing was sent, and nothing is: the token is gone.
const outlive = `-- publishing.Outlive
with old as (
  select p.id from post p where ` + mine + ` and p.state = 'PUBLISHING' and p.phase = 'preparing' and p.updated_at < now() - $4 * interval '1 millisecond'
  order by p.updated_at, p.id limit 1000 for no key update of p skip locked
), upd as (
  update post p set state = 'ERROR', error = 'The post was not ready after ' || ($4::bigint / 60000) || ' minutes of preparing it, so it was not sent.', error_code = 'took_too_long',
    phase = null, claim_token = null, claim_holder = null, claim_until = null, updated_at = now()
  from old where p.id = any (array[old.id]) returning p.org_id, p.id, p.group_id, p.channel_id
), free as (
  update channel_queue q set busy_post = null, done_at = now() from upd where q.channel_id = any (array[upd.channel_id]) and q.busy_post = upd.id
), heirs as (
  ` + bereft + ` returning f.org_id, f.id
), told as (
  insert into post_event (org_id, post_id, event, node, reason) select org_id, id, 'failed', $5, 'took_too_long' from upd union all select org_id, id, 'failed', $5, 'predecessor_failed' from heirs
)
select count(*) from upd`

// A delayed run of parts goes on in the statement that ends its predecessor. One that was left behind all the same is given up: by now its time may be long past.
const orphan = `-- publishing.Orphan
with left_over as (
  select f.id from post f left join post p on p.id = any (array[f.after_post]) and (p.org_id = f.org_id) is true
  where f.shard = any (array(` + held + `)) and f.state = 'WAITING' and f.deleted_at is null and f.updated_at < now() - $4 * interval '1 millisecond'
    and (p.id is null or p.deleted_at is not null or p.state in ('PUBLISHED', 'ERROR')) and coalesce(p.updated_at, f.updated_at) < now() - $4 * interval '1 millisecond'
  order by f.updated_at, f.id limit 1000 for no key update of f skip locked
), upd as (
  update post p set state = 'ERROR', error = 'The part before this one ended without starting this one.', error_code = 'predecessor_failed', updated_at = now()
  from left_over where p.id = any (array[left_over.id]) returning p.org_id, p.id
), told as (
  insert into post_event (org_id, post_id, event, node, reason) select org_id, id, 'failed', $5, 'predecessor_failed' from upd
)
select count(*) from upd`

// Age ends posts that stand in a state for longer than it may last: claims that are renewed for ever, and waiting parts whose predecessor is over. It returns how many.
func (s *Store) Age(ctx context.Context, l Lease, sending, waiting time.Duration, node string) (n int, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		n = 0
		add := func(row pgx.Row) error {
			var more int
			err := row.Scan(&more)
			n += more
			return err
		}
		b.Queue(outlive, l.Shards, l.epochs(), l.Holder, sending.Milliseconds(), node).QueryRow(add)
		b.Queue(orphan, l.Shards, l.epochs(), l.Holder, waiting.Milliseconds(), node).QueryRow(add)
	})
	return n, err
}
