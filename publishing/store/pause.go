package store

import (
	"context"
	_ "embed"
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

//go:embed sql/revoke_paused_claims.sql
var revokePausedClaims string

// Whoever derives the flags of channels from pauses takes this lock first, in a statement of its own: the next one then
// sees every pause and channel that was committed while it waited.
const pausesLock = `-- publishing.PausesLock
select from organization where id = $1 for no key update`

// The scheduler's flag is what all pauses of a channel come to. Where the last one ends, everything due until then was kept back, also what was claimed once before it; elsewhere two minutes are no lateness, here every moment counts.
const pauseApply = `-- publishing.PauseApply
update channel_queue x set paused = s.paused, held_until = case when x.paused and not s.paused then now() + interval '2 minutes' else x.held_until end,
  resumed_at = case when x.paused and not s.paused then now() else x.resumed_at end
from (select r.id, exists (` + pausesOf + `r.id where ` + pauseReaches + `) as paused from (` + reached + `) r) s where x.channel_id = s.id`

//go:embed sql/expire_paused.sql
var expirePaused string

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
		b.Queue(expirePaused, scope, subject, hold.Milliseconds(), by, t.node).Exec(func(tag pgconn.CommandTag) error {
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
	_, err := t.tx.Exec(ctx, revokePausedClaims, scope, subject, by, t.node)
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

//go:embed sql/count_queue.sql
var countQueue string

const figuresClaimed = `-- publishing.FiguresClaimed
select count(*) filter (where p.state = 'PUBLISHING'), count(*) filter (where p.state = 'UNKNOWN')
from post p join channel c on c.org_id = p.org_id and c.id = p.channel_id where p.state in ('PUBLISHING', 'UNKNOWN') and ($1 = '' or c.connector = $1)`

const figuresNext = `-- publishing.FiguresNext
select min(f.due) from generate_series(0, 255) s(shard) cross join lateral (
  select p.due from post p where p.state = 'QUEUE' and p.deleted_at is null and p.shard = s.shard and p.due > now() order by p.due limit 1) f`

// Figures tells how the queue stands over all organizations, of one connector unless it is empty; only for all of them does it tell when the next post is due.
func (s *Store) Figures(ctx context.Context, connector string) (f publishing.QueueStats, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(countQueue, connector, publishing.OverdueAfter.Milliseconds()).
			QueryRow(func(row pgx.Row) error { return row.Scan(&f.Due, &f.Overdue, &f.Oldest, &f.Waiting, &f.Held) })
		b.Queue(figuresClaimed, connector).QueryRow(func(row pgx.Row) error { return row.Scan(&f.Publishing, &f.Unknown) })
		if connector == "" {
			b.Queue(figuresNext).QueryRow(func(row pgx.Row) error { return row.Scan(&f.Next) })
		}
	})
	return f, err
}
