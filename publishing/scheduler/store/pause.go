package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// reached selects the channels that a pause covers: all channels of the organization, the channels
// of one customer, or a single channel. $1 is the scope and $2 the subject. If the scope is a stop,
// the subject is the organization.
const reached = `select c.id from channel c
  where c.deleted_at is null
    and ($1 in ('organization', 'instance') or $1 = 'customer' and c.customer_id = $2
      or $1 = 'channel' and c.id = $2)`

// subjectKnown reports whether the subject exists. In a transaction limited to certain channels, a
// customer counts only if all of its channels are visible, because a pause covers all of them.
const subjectKnown = `-- publishing.SubjectKnown
select $1 in ('organization', 'instance') or exists (select 1 from customer where $1 = 'customer' and id = $2
    and (coalesce(current_setting('app.channels', true), '') = ''
      or id = any (nullif(current_setting('app.customers', true), '')::uuid[])))
  or exists (select 1 from channel where $1 = 'channel' and id = $2 and deleted_at is null)`

const pauseSet = `-- publishing.PauseSet
insert into pause (org_id, subject, scope, by) values ($1, $2, $3, $4) on conflict do nothing`

const pauseClear = `-- publishing.PauseClear
delete from pause where subject = $1 and scope = $2`

// stopMayEnd reports whether a stop exists and the organization is neither suspended nor marked for
// deletion. LockOrganization prevents this from changing until the stop is deleted.
const stopMayEnd = `-- publishing.StopMayEnd
select exists (
  select from pause u join organization o on o.id = u.org_id
  where u.subject = $1 and u.scope = 'instance' and o.suspended_at is null and o.deleted_at is null)`

// pauseApply updates the paused flag of each channel that a pause covers. The flag is set if any
// pause still covers the channel. When a channel's last pause ends, all posts that became due
// before that time count as held back, including posts claimed before the pause.
//
// held_until is set to two minutes from now. Normally, a post counts as late only two minutes after
// its due time, but after a pause every post must count as late.
const pauseApply = `-- publishing.PauseApply
update channel_queue x set paused = s.paused,
  held_until = case when x.paused and not s.paused then now() + interval '2 minutes' else x.held_until end,
  resumed_at = case when x.paused and not s.paused then now() else x.resumed_at end
from (
  select r.id, exists (
    select 1 from pause u join channel c on c.org_id = u.org_id and c.id = r.id
    where u.subject in (c.org_id, c.customer_id, c.id)) as paused
  from (` + reached + `) r) s
where x.channel_id = s.id`

// Pause sets a pause and updates the flags of the channels that the pause covers. known is false if
// the subject or the organization does not exist. If scope is publishing.PauseInstance, the subject
// is the organization. If the same pause is already set, Pause changes nothing.
//
// Once the pause is committed, posts that it covers can no longer be claimed. To end earlier
// claims, call Revoke. Pause returns any Postgres error. If it waits too long for another
// transaction that changes the organization's pauses or connects a channel, pg.IsLocked returns
// true for the error.
func Pause(
	ctx context.Context, tx *db.Tx, scope publishing.PauseScope, subject any, by string,
) (known bool, err error) {
	if known, err = lockPauses(ctx, tx, scope, subject); err != nil || !known {
		return known, err
	}
	b := &pgx.Batch{}
	b.Queue(pauseSet, tx.Org, subject, scope, by)
	b.Queue(pauseApply, scope, subject)
	return true, tx.SendBatch(ctx, b).Close()
}

// lockPauses locks the organization's pauses until the transaction ends. known is false if the
// subject or the organization does not exist.
func lockPauses(ctx context.Context, tx *db.Tx, scope publishing.PauseScope, subject any) (known bool, err error) {
	if known, err = db.LockOrganization(ctx, tx); err != nil || !known {
		return false, err
	}
	err = tx.QueryRow(ctx, subjectKnown, scope, subject).Scan(&known)
	return known, err
}

const stoppedOrgs = `-- publishing.StoppedOrgs
select org_id from pause where org_id = any ($1::uuid[]) and subject = org_id and scope = 'instance'`

// Stopped returns the given organizations that are stopped, in no particular order. It uses the
// scheduler's role, which can see the stops of all organizations but no other pauses. It returns
// any Postgres error.
func Stopped(ctx context.Context, d *db.DB, orgs []tenancy.OrgID) (stopped []tenancy.OrgID, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(stoppedOrgs, db.UUIDs(orgs)).Query(db.Into(&stopped, pgx.RowTo[tenancy.OrgID]))
	})
	return stopped, err
}

//go:embed sql/revoke_paused_claims.sql
var revokePausedClaims string

// Revoke ends the claims on posts that a pause covers, except for claims whose calls have already
// begun. If the pause has been deleted, Revoke does nothing. Once its transaction commits, no call
// begins for a post that the pause covers. If Revoke returns a Postgres error, no claim was ended.
//
// Revoke must not run in the same transaction as Pause. Pause locks rows in channel_queue, and
// posts must be locked before those rows.
func Revoke(ctx context.Context, tx *db.Tx, scope publishing.PauseScope, subject any, by string) error {
	_, err := tx.Exec(ctx, revokePausedClaims, scope, subject, by, tx.Node)
	return err
}

const heldCount = `-- publishing.HeldCount
select count(*) filter (where p.state = 'QUEUE' and p.due <= now()),
  count(*) filter (where p.state in ('PUBLISHING', 'UNKNOWN'))
from post p
where p.channel_id in (` + reached + `) and p.deleted_at is null
  and (p.state = 'QUEUE' and p.due <= now() or p.state in ('PUBLISHING', 'UNKNOWN'))`

const heldPosts = `-- publishing.HeldPosts
select p.id, p.channel_id, p.due, c.name, coalesce(a.content, '') as content, coalesce(a.html, false) as html
from post p join channel c on c.org_id = p.org_id and c.id = p.channel_id
left join lateral (
  select a.content, a.html from part a where a.org_id = p.org_id and a.post_id = p.id order by a.position limit 1) a
on true
where p.channel_id in (` + reached + `) and p.state = 'QUEUE' and p.deleted_at is null
order by p.due, p.seq limit $3`

type heldRow struct {
	ID          publishing.PostID    `db:"id"`
	Channel     publishing.ChannelID `db:"channel_id"`
	Due         time.Time            `db:"due"`
	ChannelName string               `db:"name"`
	Text        string               `db:"content"`
	HTML        bool                 `db:"html"`
}

// Held returns what a pause of the subject holds back, or would hold back if it were set. The
// result has the number of due posts, the number of posts in flight, and the first
// publishing.MaxHeldShown queued posts by due time. If the subject covers no channels, both numbers
// are 0. Held returns any Postgres error.
func Held(
	ctx context.Context, tx *db.Tx, scope publishing.PauseScope, subject any,
) (out publishing.PauseResult, err error) {
	out.Channels, out.Texts = map[publishing.ChannelID]string{}, map[publishing.PostID]string{}
	b := &pgx.Batch{}
	b.Queue(heldCount, scope, subject).QueryRow(func(row pgx.Row) error { return row.Scan(&out.Held, &out.InFlight) })
	held := pgx.RowToStructByName[heldRow]
	b.Queue(heldPosts, scope, subject, publishing.MaxHeldShown).Query(db.Each(held, func(r heldRow) {
		out.Posts = append(out.Posts, publishing.Post{
			ID: r.ID, Channel: r.Channel, State: publishing.StateQueue, PublishDate: r.Due,
		})
		out.Channels[r.Channel] = r.ChannelName
		out.Texts[r.ID] = publishing.Content{Text: r.Text, HTML: r.HTML}.Excerpt()
	}))
	return out, tx.SendBatch(ctx, b).Close()
}
