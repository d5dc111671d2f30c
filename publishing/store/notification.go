package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/tenancy"
)

// channelNamed name the channel as it is called today, also one that was disconnected. An approval has the channel of
// its post.
const channelNamed = `coalesce(c.name, '') as channel_name, coalesce(c.connector, '') as connector`

const ofChannel = ` left join post p on p.org_id = n.org_id and p.id = n.post_id and n.channel_id is null
left join channel c on c.org_id = n.org_id and c.id = coalesce(n.channel_id, p.channel_id)`

var notificationPage = `-- publishing.NotificationPage
with n as (
  select n.org_id, ` + notificationColumns + ` from notification n
  where n.org_id = $1 and (n.person_id is null or n.person_id = $2)
  order by n.last_at desc, n.id desc offset $3 limit $4)
select ` + notificationColumns + `, ` + channelNamed + ` from n` + ofChannel + `
order by n.last_at desc, n.id desc`

const notificationCount = `-- publishing.NotificationCount
select count(*) from notification n where n.org_id = $1 and (n.person_id is null or n.person_id = $2)`

// Notifications returns a page of the notifications that a person of the organization sees, and their number.
func (s *Store) Notifications(
	ctx context.Context, org tenancy.OrgID, person tenancy.PersonID, page, limit int,
) (out publishing.NotificationPage, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(notificationPage, org, person, page*limit, limit).
			Query(into(&out.Notifications, pgx.RowToStructByName[publishing.ListedNotification]))
		b.Queue(notificationCount, org, person).
			QueryRow(func(row pgx.Row) error { return row.Scan(&out.Total) })
	})
	return out, err
}

// readUntil is until when a person has read: without a row, what was before the membership.
const readUntil = `coalesce((select r.read_at from notification_read r where r.org_id = $1 and r.person_id = $2),
  (select m.created_at from member m where m.org_id = $1 and m.person_id = $2), 'epoch'::timestamptz)`

// wantedBy has the muted kinds in $3. A channel that must be connected again is muted only while no post has failed.
const wantedBy = `(n.person_id is null or n.person_id = $2)
  and (n.kind <> all ($3::text[]) or n.kind = 'reconnect' and n.posts > 0)`

const notificationsUnread = `-- publishing.NotificationsUnread
select count(*) from notification n where n.org_id = $1 and n.last_at > ` + readUntil + ` and ` + wantedBy

// UnreadNotifications returns how many notifications a member has not read, without those of the muted kinds.
func (s *Store) UnreadNotifications(
	ctx context.Context, org tenancy.OrgID, person tenancy.PersonID, muted []publishing.NotificationKind,
) (n int, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(notificationsUnread, org, person, texts(muted)).
			QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	})
	return n, err
}

// notificationsRead is one statement, so that what is marked is what is returned.
var notificationsRead = `-- publishing.NotificationsRead
with n as (
  select n.org_id, ` + notificationColumns + ` from notification n
  where n.org_id = $1 and ` + wantedBy + ` order by n.last_at desc, n.id desc limit $4
), marked as (
  insert into notification_read as r (org_id, person_id, read_at)
  select $1, $2, max(n.last_at) from n where $5 having count(*) > 0
  on conflict (org_id, person_id) do update set read_at = greatest(r.read_at, excluded.read_at))
select ` + notificationColumns + `, ` + channelNamed + ` from n` + ofChannel + `
order by n.last_at desc, n.id desc`

const notificationsLastRead = `-- publishing.NotificationsLastRead
select ` + readUntil

// ReadNotifications returns the newest notifications that a member wants to see, and until when the member had read
// before. With mark the member has read them now.
func (s *Store) ReadNotifications(
	ctx context.Context, org tenancy.OrgID, person tenancy.PersonID, muted []publishing.NotificationKind, limit int,
	mark bool,
) (out []publishing.ListedNotification, before time.Time, err error) {
	err = s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(notificationsLastRead, org, person).QueryRow(func(row pgx.Row) error { return row.Scan(&before) })
		b.Queue(notificationsRead, org, person, texts(muted), limit, mark).
			Query(into(&out, pgx.RowToStructByName[publishing.ListedNotification]))
	})
	return out, before, err
}

var incidentMails = `-- publishing.IncidentMails
select ` + notificationColumns + `, ` + channelNamed + `
from notification n` + ofChannel + `
where n.org_id = $1 and n.mail_at <= $2 and n.kind <> 'published' order by n.mail_at, n.id limit $3`

// IncidentMails returns incidents whose mails are due, without published posts.
func (s *Store) IncidentMails(
	ctx context.Context, org tenancy.OrgID, now time.Time, limit int,
) (out []publishing.ListedNotification, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(incidentMails, org, now, limit).
			Query(into(&out, pgx.RowToStructByName[publishing.ListedNotification]))
	})
	return out, err
}

// publishedMails is about the oldest day.
const publishedMails = `-- publishing.PublishedMails
with due as (
  select n.channel_id, n.posts, date_trunc('day', n.created_at, 'UTC') as day from notification n
  where n.org_id = $1 and n.mail_at <= $2 and n.kind = 'published'
), counted as (
  select d.channel_id, d.day, sum(d.posts) as posts from due d where d.day = (select min(day) from due) group by 1, 2)
select d.day, coalesce(c.name, '') as name, coalesce(c.connector, '') as connector, d.posts::int as posts,
  count(*) over ()::int as channels, sum(d.posts) over ()::int as all_posts
from counted d left join channel c on c.org_id = $1 and c.id = d.channel_id
order by d.posts desc, d.channel_id limit $3`

// PublishedOn is a channel and its posts of a day, with the numbers of all channels of the organization.
type PublishedOn struct {
	Day       time.Time `db:"day"`
	Name      string    `db:"name"`
	Connector string    `db:"connector"`
	Posts     int       `db:"posts"`
	Channels  int       `db:"channels"`
	AllPosts  int       `db:"all_posts"`
}

// PublishedMails returns the channels with the most posts on the oldest day about which mails are due, at most limit.
func (s *Store) PublishedMails(
	ctx context.Context, org tenancy.OrgID, now time.Time, limit int,
) (out []PublishedOn, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(publishedMails, org, now, limit).Query(into(&out, pgx.RowToStructByName[PublishedOn]))
	})
	return out, err
}

// Rows that another transaction has are left: the report is repeated then, and ignored. Posts that have failed since
// the mails about their channel were queued keep the mails due.
const mailsQueued = `-- publishing.MailsQueued
update notification n set mailed_posts = x.posts,
  mail_at = case when n.kind = 'reconnect' and x.posts = 0 and n.posts > 0 then n.mail_at end
from unnest($2::uuid[], $3::integer[]) x (id, posts) where n.org_id = $1 and n.id = x.id and n.id in (
  select o.id from notification o where o.org_id = $1 and o.id = any ($2) order by o.id for no key update skip locked)`

// MailsQueued records that the mails of incidents are queued, with the number of posts that they name.
func (s *Store) MailsQueued(ctx context.Context, org tenancy.OrgID, of []publishing.ListedNotification) error {
	ids, posts := make([]publishing.NotificationID, len(of)), make([]int, len(of))
	for i, n := range of {
		ids[i], posts[i] = n.ID, n.Posts
	}
	return s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(mailsQueued, org, uuids(ids), posts) })
}

const publishedQueued = `-- publishing.PublishedQueued
update notification set mail_at = null where org_id = $1 and id in (
  select n.id from notification n
  where n.org_id = $1 and n.mail_at <= $2 and n.kind = 'published' and date_trunc('day', n.created_at, 'UTC') = $3
  order by n.id for no key update skip locked)`

// PublishedQueued records that the mails about the posts of a day are queued.
func (s *Store) PublishedQueued(ctx context.Context, org tenancy.OrgID, now, day time.Time) error {
	return s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(publishedQueued, org, now, day) })
}
