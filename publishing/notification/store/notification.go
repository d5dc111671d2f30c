// Package store reads and writes the rows of notifications, incidents and incident events. Only the
// parent package uses it.
package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// shownWith lists the columns of publishing.ListedNotification that are not in the notification
// table. The channel's current name is shown even if the channel has been disconnected. For an
// approval, the channel is the post's channel.
const shownWith = `coalesce(c.name, '') as channel_name, coalesce(c.connector, '') as connector,
  coalesce(c.picture, '') as channel_picture, p.publish_date as post_date, a.requested_by as asked_by,
  coalesce(a.status = 'PENDING', false) as waits`

const withChannel = ` left join post p on p.org_id = n.org_id and p.id = n.post_id
left join approval a on a.org_id = n.org_id and a.id = n.approval_id
left join channel c on c.org_id = n.org_id
  and c.id = coalesce(n.channel_id, case n.kind when 'approval' then p.channel_id end)`

var notificationPage = `-- publishing.NotificationPage
with n as (
  select n.org_id, ` + notificationColumns + ` from notification n
  where n.org_id = $1 and (n.person_id is null or n.person_id = $2)
  order by n.last_at desc, n.id desc offset $3 limit $4)
select ` + notificationColumns + `, ` + shownWith + ` from n` + withChannel + `
order by n.last_at desc, n.id desc`

const notificationCount = `-- publishing.NotificationCount
select count(*) from notification n where n.org_id = $1 and (n.person_id is null or n.person_id = $2)`

// Notifications returns a page of the notifications that a member can see, and the total number of
// these notifications.
func Notifications(
	ctx context.Context, d *db.DB, org tenancy.OrgID, person tenancy.PersonID, page, limit int,
) (out publishing.NotificationPage, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(notificationPage, org, person, page*limit, limit).
			Query(db.Into(&out.Notifications, pgx.RowToStructByName[publishing.ListedNotification]))
		b.Queue(notificationCount, org, person).
			QueryRow(func(row pgx.Row) error { return row.Scan(&out.Total) })
	})
	return out, err
}

// readUntil is the time up to which a person has read everything. If there is no row, it is the
// time at which the person became a member.
const readUntil = `coalesce((select r.read_at from notification_read r where r.org_id = $1 and r.person_id = $2),
  (select m.created_at from member m where m.org_id = $1 and m.person_id = $2), 'epoch'::timestamptz)`

// wantedBy takes the muted kinds as $3. Muting reconnect notifications hides only those without
// failed posts.
const wantedBy = `(n.person_id is null or n.person_id = $2)
  and (n.kind <> all ($3::text[]) or n.kind = 'reconnect' and n.posts > 0)`

// unreadBy is true for a notification after readUntil that was never read, or that has had new
// activity since it was read.
const unreadBy = `n.last_at > ` + readUntil + ` and not exists (select from notification_seen s
  where s.org_id = $1 and s.person_id = $2 and s.notification_id = n.id and s.last_at >= n.last_at)`

const notificationsUnread = `-- publishing.NotificationsUnread
select count(*) from notification n where n.org_id = $1 and ` + wantedBy + ` and ` + unreadBy

// UnreadNotifications returns how many notifications a member has not read, excluding the muted
// kinds.
func UnreadNotifications(
	ctx context.Context, d *db.DB, org tenancy.OrgID, person tenancy.PersonID, muted []publishing.NotificationKind,
) (n int, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(notificationsUnread, org, person, db.Texts(muted)).
			QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	})
	return n, err
}

// notificationsRead is a single statement, so that it marks exactly the notifications that it
// returns.
var notificationsRead = `-- publishing.NotificationsRead
with n as (
  select n.org_id, ` + notificationColumns + ` from notification n
  where n.org_id = $1 and ` + wantedBy + ` order by n.last_at desc, n.id desc offset $4 limit $5
), marked as (
  insert into notification_seen (org_id, person_id, notification_id, last_at)
  select $1, $2, n.id, n.last_at from n where $6 and ` + unreadBy + `
  on conflict (org_id, person_id, notification_id) do update set last_at = excluded.last_at)
select ` + notificationColumns + `, ` + shownWith + ` from n` + withChannel + `
order by n.last_at desc, n.id desc`

// notificationsReadUntil advances readUntil to just before the oldest unread notification, and
// deletes the notification_seen rows that become redundant.
const notificationsReadUntil = `-- publishing.NotificationsReadUntil
with until as (
  select max(n.last_at) as at from notification n
  where n.org_id = $1 and ` + wantedBy + ` and n.last_at > ` + readUntil + ` and n.last_at < coalesce((
    select min(n.last_at) from notification n where n.org_id = $1 and ` + wantedBy + ` and ` + unreadBy + `), 'infinity')
), moved as (
  insert into notification_read as r (org_id, person_id, read_at)
  select $1, $2, u.at from until u where u.at is not null
  on conflict (org_id, person_id) do update set read_at = greatest(r.read_at, excluded.read_at))
delete from notification_seen s using until u where s.org_id = $1 and s.person_id = $2 and s.last_at <= u.at`

const notificationsLastRead = `-- publishing.NotificationsLastRead
select ` + readUntil

// NotificationsRead requests a page of the notifications that a member has not muted. Pages start
// at 0.
type NotificationsRead struct {
	Person      tenancy.PersonID
	Muted       []publishing.NotificationKind
	Page, Limit int
	// Mark marks the returned notifications as read.
	Mark bool
}

// ReadNotifications returns a page of the notifications that a member has not muted, newest first.
// before is the time up to which the member had already read everything.
func ReadNotifications(
	ctx context.Context, d *db.DB, org tenancy.OrgID, q NotificationsRead,
) (out []publishing.ListedNotification, before time.Time, err error) {
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(notificationsLastRead, org, q.Person).QueryRow(func(row pgx.Row) error { return row.Scan(&before) })
		b.Queue(notificationsRead, org, q.Person, db.Texts(q.Muted), q.Page*q.Limit, q.Limit, q.Mark).
			Query(db.Into(&out, pgx.RowToStructByName[publishing.ListedNotification]))
		if q.Mark {
			b.Queue(notificationsReadUntil, org, q.Person, db.Texts(q.Muted))
		}
	})
	return out, before, err
}

var incidentMails = `-- publishing.IncidentMails
select ` + notificationColumns + `, ` + shownWith + `,
  coalesce(left(w.content, $4), '') as text, coalesce(w.html, false) as html
from notification n` + withChannel + `
left join lateral (
  select f.content, f.html from part f where f.org_id = n.org_id and f.post_id = n.post_id order by f.position limit 1
) w on true
where n.org_id = $1 and n.mail_at <= $2 and n.kind <> 'published' order by n.mail_at, n.id limit $3`

// excerptOf is how many characters of a post are read to find its first words. Markup counts toward
// this number.
const excerptOf = 2000

// IncidentMails returns the incidents whose emails are due, with the first words of their posts. It
// leaves out notifications about published posts.
func IncidentMails(
	ctx context.Context, d *db.DB, org tenancy.OrgID, now time.Time, limit int,
) (out []publishing.ListedNotification, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(incidentMails, org, now, limit, excerptOf).Query(db.Into(&out, scanIncidentMail))
	})
	return out, err
}

func scanIncidentMail(row pgx.CollectableRow) (publishing.ListedNotification, error) {
	r, err := pgx.RowToStructByName[struct {
		publishing.ListedNotification
		Text string `db:"text"`
		HTML bool   `db:"html"`
	}](row)
	r.Words = publishing.Content{Text: r.Text, HTML: r.HTML}.Excerpt()
	return r.ListedNotification, err
}

// publishedMails reads only the oldest due day.
const publishedMails = `-- publishing.PublishedMails
with due as (
  select n.id, n.posts, n.created_at from notification n
  where n.org_id = $1 and n.mail_at <= $2 and n.kind = 'published' order by n.created_at limit 1)
select d.id, date_trunc('day', d.created_at, 'UTC') as day, coalesce(c.name, '') as name,
  coalesce(c.connector, '') as connector, p.posts, count(*) over ()::int as channels, d.posts as all_posts
from due d join notification_posts p on p.org_id = $1 and p.notification_id = d.id
left join channel c on c.org_id = $1 and c.id = p.channel_id
order by p.posts desc, p.channel_id limit $3`

// PublishedOn counts the posts that a channel published on one day. Channels and AllPosts are the
// organization's totals for that day.
type PublishedOn struct {
	ID        publishing.NotificationID `db:"id"`
	Day       time.Time                 `db:"day"`
	Name      string                    `db:"name"`
	Connector string                    `db:"connector"`
	Posts     int                       `db:"posts"`
	Channels  int                       `db:"channels"`
	AllPosts  int                       `db:"all_posts"`
}

// PublishedMails finds the oldest day whose emails are due. It returns at most limit channels,
// choosing those that published the most posts on that day.
func PublishedMails(
	ctx context.Context, d *db.DB, org tenancy.OrgID, now time.Time, limit int,
) (out []PublishedOn, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(publishedMails, org, now, limit).Query(db.Into(&out, pgx.RowToStructByName[PublishedOn]))
	})
	return out, err
}

// mailsQueued skips rows that another transaction has locked. Their reports are passed to the
// mailer again later, and the mailer ignores them. An email stays due if the first post failed
// after the email about the channel was queued, or if the incident has been reopened in the
// meantime.
const mailsQueued = `-- publishing.MailsQueued
update notification n set mailed_posts = x.posts, mailed_at = $5,
  mail_at = case when n.kind = 'reconnect' and x.posts = n.earlier_posts and n.posts > x.posts then n.mail_at end
from unnest($2::uuid[], $3::integer[], $4::integer[]) x (id, posts, reopened)
where n.org_id = $1 and n.id = x.id and n.reopened = x.reopened and n.id in (
  select o.id from notification o where o.org_id = $1 and o.id = any ($2) order by o.id for no key update skip locked)`

// MailsQueued records that emails about incidents were queued at the given time. It also records
// how many of each incident's posts the emails cover.
func MailsQueued(
	ctx context.Context, d *db.DB, org tenancy.OrgID, of []publishing.ListedNotification, at time.Time,
) error {
	ids, posts := make([]publishing.NotificationID, len(of)), make([]int, len(of))
	reopened := make([]int, len(of))
	for i, n := range of {
		ids[i], posts[i], reopened[i] = n.ID, n.Posts, n.Reopened
	}
	return d.WriteOrg(
		ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(mailsQueued, org, db.UUIDs(ids), posts, reopened, at) },
	)
}

const publishedQueued = `-- publishing.PublishedQueued
with queued as (
  update notification set mail_at = null, mailed_posts = posts, mailed_at = $3 where org_id = $1 and id in (
    select n.id from notification n where n.org_id = $1 and n.id = $2 for no key update skip locked)
  returning id)
delete from notification_posts p using queued q where p.org_id = $1 and p.notification_id = q.id`

// PublishedQueued records that the emails about a notification's published posts were queued at the
// given time. If another transaction has locked the notification, PublishedQueued does nothing. The
// report is then passed to the mailer again later, and the mailer ignores it.
func PublishedQueued(
	ctx context.Context, d *db.DB, org tenancy.OrgID, of publishing.NotificationID, at time.Time,
) error {
	return d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(publishedQueued, org, of, at) })
}
