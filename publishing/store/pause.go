package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/pg"
	"crier/publishing"
)

const pauseSet = `-- publishing.PauseSet
insert into pause (org_id, subject, scope, by) values ($1, $2, $3, $4) on conflict do nothing`

const pauseClear = `-- publishing.PauseClear
delete from pause where subject = $1`

// Channels that a pause reaches: all of the organization, those of a customer, or one.
const reached = `select c.id from channel c where c.deleted_at is null and ($1 = 'organization' or $1 = 'customer' and c.customer_id = $2 or $1 = 'channel' and c.id = $2)`

const (
	pausesOf     = `select 1 from pause u join channel c on c.org_id = u.org_id and c.id = `
	pauseReaches = `u.subject in (c.org_id, c.customer_id, c.id)`
)

// A claim whose call has not begun is taken back: without its token the call is not made.
const pauseRevoke = `-- publishing.PauseRevoke
with held as (
  select p.id from post p where p.channel_id in (` + reached + `) and p.state = 'PUBLISHING' and p.phase = 'preparing' and p.deleted_at is null
    and exists (select from channel_queue q where q.channel_id = p.channel_id and q.paused)
  order by p.id for no key update of p
), back as (
  update post p set state = 'QUEUE', phase = null, claim_token = null, claim_holder = null, claim_until = null, updated_at = now() from held where p.id = held.id
  returning p.org_id, p.id
)
insert into post_event (org_id, post_id, event, by, node, reason) select org_id, id, 'returned', $3, nullif($4, ''), 'publishing is paused' from back`

// Whoever derives the flags of channels from pauses takes this lock first, in a statement of its own: the next one then
// sees every pause and channel that was committed while it waited.
const pausesLock = `-- publishing.PausesLock
select from organization where id = $1 for no key update`

// The scheduler's flag is what all pauses of a channel come to. Where the last one ends, everything due until then was kept back, also what was claimed once before it; elsewhere two minutes are no lateness, here every moment counts.
const pauseApply = `-- publishing.PauseApply
update channel_queue x set paused = s.paused, held_until = case when x.paused and not s.paused then now() + interval '2 minutes' else x.held_until end,
  resumed_at = case when x.paused and not s.paused then now() else x.resumed_at end
from (select r.id, exists (` + pausesOf + `r.id where ` + pauseReaches + `) as paused from (` + reached + `) r) s where x.channel_id = s.id`

// What waited for longer than a pause may hold it does not go out by itself.
const heldExpire = `-- publishing.HeldExpire
with late as (
  select p.id from post p join channel_queue q on q.channel_id = p.channel_id
  where p.channel_id in (` + reached + `) and q.paused and not exists (` + pausesOf + `p.channel_id where ` + pauseReaches + `) and p.state = 'QUEUE' and p.deleted_at is null and p.due <= now() - $3 * interval '1 millisecond'
  order by p.id for no key update of p
), upd as (
  update post p set state = 'ERROR', error = 'Publishing was paused at the time of the post, and for too long after it.' || ` + maybeSentWords + `,
    error_code = ` + maybeSentCode + `'missed' end, outcome_unknown = p.maybe_sent, updated_at = now()
  from late where p.id = late.id returning p.org_id, p.id, p.group_id, p.error_code
), free as (
  update channel_queue q set busy_post = null from upd where q.busy_post = upd.id
), heirs as (
  ` + failFollowers + ` returning f.org_id, f.id
)
insert into post_event (org_id, post_id, event, by, node, reason) select org_id, id, 'failed', $4, nullif($5, ''), error_code from upd
union all select org_id, id, 'failed', $4, nullif($5, ''), 'predecessor_failed' from heirs`

const heldCount = `-- publishing.HeldCount
select count(*) filter (where p.state = 'QUEUE' and p.due <= now()), count(*) filter (where p.state in ('PUBLISHING', 'UNKNOWN'))
from post p where p.channel_id in (` + reached + `) and p.deleted_at is null and (p.state = 'QUEUE' and p.due <= now() or p.state in ('PUBLISHING', 'UNKNOWN'))`

const heldPosts = `-- publishing.HeldPosts
select p.id, p.channel_id, p.due, c.name, coalesce(a.content, ''), coalesce(a.html, false)
from post p join channel c on c.org_id = p.org_id and c.id = p.channel_id
left join lateral (select a.content, a.html from part a where a.org_id = p.org_id and a.post_id = p.id order by a.position limit 1) a on true
where p.channel_id in (` + reached + `) and p.state = 'QUEUE' and p.deleted_at is null order by p.due, p.seq limit $3`

const subjectKnown = `-- publishing.SubjectKnown
select $1 = 'organization' or exists (select 1 from customer where $1 = 'customer' and id = $2) or exists (select 1 from channel where $1 = 'channel' and id = $2 and deleted_at is null)`

// Pause sets or clears one pause and makes the scheduler's flags follow; false means that there is no such thing to
// pause. On clearing, what was due for longer than hold is given up. When a pause that was set is committed, no claim
// takes what it reaches; a claim from before it is taken back by Revoke.
func (t *Tx) Pause(ctx context.Context, scope publishing.PauseScope, subject any, paused bool, by string, hold time.Duration) (missed int, known bool, err error) {
	if _, err := t.tx.Exec(ctx, pausesLock, t.org); err != nil {
		return 0, false, err
	}
	if err := t.tx.QueryRow(ctx, subjectKnown, scope, subject).Scan(&known); err != nil || !known {
		return 0, known, err
	}
	b := &pgx.Batch{}
	if paused {
		b.Queue(pauseSet, t.org, subject, scope, by)
	} else {
		b.Queue(pauseClear, subject)
		b.Queue(heldExpire, scope, subject, hold.Milliseconds(), by, t.node).Exec(func(tag pgconn.CommandTag) error {
			missed = int(tag.RowsAffected())
			return nil
		})
	}
	b.Queue(pauseApply, scope, subject)
	t.freed = t.freed || !paused
	return missed, true, t.tx.SendBatch(ctx, b).Close()
}

// Revoke takes back the claims that a pause reaches whose call has not begun, unless the pause is gone. It needs a
// transaction of its own after Pause: that one has locked rows of channel_queue, and everybody locks posts first.
// When it returns, nothing that the pause reaches begins a call any more.
func (t *Tx) Revoke(ctx context.Context, scope publishing.PauseScope, subject any, by string) error {
	_, err := t.tx.Exec(ctx, pauseRevoke, scope, subject, by, t.node)
	return err
}

// Held tells what a pause keeps back, or would.
func (t *Tx) Held(ctx context.Context, scope publishing.PauseScope, subject any) (out publishing.PauseResult, err error) {
	b := &pgx.Batch{}
	b.Queue(heldCount, scope, subject).QueryRow(func(row pgx.Row) error { return row.Scan(&out.Held, &out.InFlight) })
	out.Channels, out.Texts = map[publishing.ChannelID]string{}, map[publishing.PostID]string{}
	p := publishing.Post{State: publishing.StateQueue}
	var name string
	var content publishing.Content
	b.Queue(heldPosts, scope, subject, publishing.MaxHeldShown).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&p.ID, &p.Channel, &p.PublishDate, &name, &content.Text, &content.HTML}, func() error {
			out.Posts, out.Channels[p.Channel], out.Texts[p.ID] = append(out.Posts, p), name, content.Excerpt()
			return nil
		})
		return err
	})
	return out, t.tx.SendBatch(ctx, b).Close()
}

// Heads that could be claimed now, by the claim's own tests; what is due behind a busy channel waits for its turn and is no lateness of ours.
const figures = `-- publishing.Figures
select count(*) filter (where ripe), count(*) filter (where ripe and at < now() - $2 * interval '1 millisecond'), coalesce(now() - min(at) filter (where ripe), interval '0'),
  count(*) filter (where not ripe and not held), count(*) filter (where held)
from (
  select greatest(p.due, p.not_before, q.not_before) as at, q.parked or q.paused as held,
    not q.parked and not q.paused and (q.busy_post is null or q.busy_post = p.id) and greatest(p.due, p.not_before, q.not_before) <= now() as ripe
  from generate_series(0, 255) s(shard) join post p on p.shard = s.shard and p.state = 'QUEUE' and p.deleted_at is null and p.due <= now()
  join channel_queue q on q.channel_id = p.channel_id join channel c on c.org_id = p.org_id and c.id = p.channel_id
  where $1 = '' or c.connector = $1) d`

const figuresClaimed = `-- publishing.FiguresClaimed
select count(*) filter (where p.state = 'PUBLISHING'), count(*) filter (where p.state = 'UNKNOWN')
from post p join channel c on c.org_id = p.org_id and c.id = p.channel_id where p.state in ('PUBLISHING', 'UNKNOWN') and ($1 = '' or c.connector = $1)`

const figuresNext = `-- publishing.FiguresNext
select min(f.due) from generate_series(0, 255) s(shard) cross join lateral (
  select p.due from post p where p.state = 'QUEUE' and p.deleted_at is null and p.shard = s.shard and p.due > now() order by p.due limit 1) f`

// Figures tells how the queue stands over all organizations, of one connector unless it is empty; only for all of them does it tell when the next post is due.
func (s *Store) Figures(ctx context.Context, connector string) (f publishing.Figures, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(figures, connector, publishing.OverdueAfter.Milliseconds()).
			QueryRow(func(row pgx.Row) error { return row.Scan(&f.Due, &f.Overdue, &f.Oldest, &f.Waiting, &f.Held) })
		b.Queue(figuresClaimed, connector).QueryRow(func(row pgx.Row) error { return row.Scan(&f.Publishing, &f.Unknown) })
		if connector == "" {
			b.Queue(figuresNext).QueryRow(func(row pgx.Row) error { return row.Scan(&f.Next) })
		}
	})
	return f, err
}
