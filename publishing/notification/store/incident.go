package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// incidentOrgs goes from organization to organization along the index, and reads one event of each.
const incidentOrgs = `-- publishing.IncidentOrgs
with recursive org as (
  (select e.org_id from incident_event e where e.org_id > $1 order by e.org_id limit 1)
  union all
  select (select e.org_id from incident_event e where e.org_id > o.org_id order by e.org_id limit 1)
  from org o where o.org_id is not null)
select o.org_id from org o where o.org_id is not null limit $2`

// IncidentOrgs returns organizations with events that are not counted yet, by id, after the given
// one. A zero after starts with the first organization.
func IncidentOrgs(ctx context.Context, d *db.DB, after tenancy.OrgID, limit int) (out []tenancy.OrgID, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(incidentOrgs, pgtype.UUID{Bytes: after.UUID(), Valid: true}, limit).
			Query(db.Into(&out, pgx.RowTo[tenancy.OrgID]))
	})
	return out, err
}

// mailOrgs is incidentOrgs for notifications whose mails are due. One scan of the index
// notification_mail reads those of all organizations that the limit allows.
const mailOrgs = `-- publishing.MailOrgs
with recursive org as (
  (select n.org_id from notification n where n.mail_at <= $2 and n.org_id > $1 order by n.org_id limit 1)
  union all
  select (select n.org_id from notification n where n.mail_at <= $2 and n.org_id > o.org_id order by n.org_id limit 1)
  from org o where o.org_id is not null)
select o.org_id from org o where o.org_id is not null limit $3`

// MailOrgs returns organizations with notifications whose mails are due, by id, after the given
// one.
func MailOrgs(
	ctx context.Context, d *db.DB, after tenancy.OrgID, now time.Time, limit int,
) (out []tenancy.OrgID, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(mailOrgs, pgtype.UUID{Bytes: after.UUID(), Valid: true}, now, limit).
			Query(db.Into(&out, pgx.RowTo[tenancy.OrgID]))
	})
	return out, err
}

// incidentBacklog reads a limited number of rows, so that it stays cheap if many events wait.
const incidentBacklog = `-- publishing.IncidentBacklog
select count(*), coalesce(extract(epoch from clock_timestamp() - min(e.at)), 0)::bigint
from (select at from incident_event limit $1) e`

// IncidentBacklog returns how many events wait to be counted, at most limit, and the age of the
// oldest of them in seconds.
func IncidentBacklog(ctx context.Context, d *db.DB, limit int) (rows, seconds int64, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(incidentBacklog, limit).QueryRow(func(row pgx.Row) error { return row.Scan(&rows, &seconds) })
	})
	return rows, seconds, err
}

const incidentsTryLock = `-- publishing.IncidentsTryLock
select pg_try_advisory_xact_lock(hashtextextended('incidents/' || $1, 0)) and set_config('lock_timeout', '100ms', true) <> ''`

// TryLockIncidents returns true to only one transaction at a time that counts the organization's
// events or adds a notification. The rest of the transaction waits at most 100 ms for any lock, so
// that one organization does not delay the others.
func TryLockIncidents(ctx context.Context, tx *db.Tx) (got bool, err error) {
	err = tx.QueryRow(ctx, incidentsTryLock, tx.Org.String()).Scan(&got)
	return got, err
}

const activityTime = `-- publishing.ActivityTime
select greatest($2::timestamptz, (select n.last_at + interval '1 microsecond' from notification n
  where n.org_id = $1 order by n.last_at desc, n.id desc limit 1))`

// ActivityTime returns now or, if that is not later than Notification.LastAt of every notification
// of the organization, a time that is. The transaction must be the only one that writes these
// notifications; see TryLockIncidents. A reader who has read everything up to a time has then read
// all that can ever be there.
func ActivityTime(ctx context.Context, tx *db.Tx, now time.Time) (at time.Time, err error) {
	err = tx.QueryRow(ctx, activityTime, tx.Org, now).Scan(&at)
	return at, err
}

// IncidentEvent is one event, which is counted in an incident.
type IncidentEvent struct {
	ID      int64                        `db:"id"`
	At      time.Time                    `db:"at"`
	Kind    publishing.IncidentEventKind `db:"kind"`
	Channel publishing.ChannelID         `db:"channel_id"`
	// Post is zero for an event of the channel.
	Post publishing.PostID `db:"post_id"`
	// Code and Reason belong to the post that failed. Reason is for people.
	Code   *string `db:"code"`
	Reason *string `db:"reason"`
}

// ChannelPosts counts the posts of one channel in a notification about several channels.
type ChannelPosts struct {
	Notification publishing.NotificationID
	Channel      publishing.ChannelID
	Posts        int
}

// IncidentChanges are the changes to store.
type IncidentChanges struct {
	// The incidents in Deleted are deleted first, then those in Changed are updated, then those in
	// Begun are inserted, because a channel may have only one open incident of a kind.
	Deleted []publishing.NotificationID
	Changed []publishing.Notification
	Begun   []publishing.Notification
	// Published has posts to add to the counts of their channels.
	Published []ChannelPosts
}

const incidentEvents = `-- publishing.IncidentEvents
select e.id, e.at, e.kind, e.channel_id, e.post_id, e.code, e.reason from incident_event e
where e.org_id = $1 order by e.id limit $2 for update skip locked`

// IncidentEvents locks and returns the oldest events of the organization.
func IncidentEvents(ctx context.Context, tx *db.Tx, most int) ([]IncidentEvent, error) {
	rows, err := tx.Query(ctx, incidentEvents, tx.Org, most)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[IncidentEvent])
}

const incidentEventsDelete = `-- publishing.IncidentEventsDelete
delete from incident_event where org_id = $1 and id = any ($2) returning id`

// DeleteIncidentEvents deletes events and returns the ids of those that it deleted. Only these may
// be counted in the transaction: the others were counted by another one.
func DeleteIncidentEvents(ctx context.Context, tx *db.Tx, events []int64) ([]int64, error) {
	rows, err := tx.Query(ctx, incidentEventsDelete, tx.Org, events)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

var notificationColumns = db.Columns[publishing.Notification]("n")

// openIncidents does not wait for locks: if it meets one, the organization is left for the next
// round.
var openIncidents = `-- publishing.OpenIncidents
select ` + notificationColumns + ` from notification n
where n.org_id = $1 and n.id = any (array(
  select o.id from notification o where o.org_id = $1 and o.channel_id = any ($2) and o.closed_at is null
    and o.kind in ('reconnect', 'failed', 'missed')
  union all
  select r.id from notification r where r.org_id = $1 and r.channel_id = any ($2) and r.closed_at > $4
  union all
  select u.id from notification u where u.org_id = $1 and u.channel_id = any ($2) and u.kind = 'unknown'
    and (u.created_at at time zone 'UTC')::date >= $3
  union all
  select d.id from notification d where d.org_id = $1 and d.kind = 'published'
    and (d.created_at at time zone 'UTC')::date >= $3))
order by n.id for no key update nowait`

// OpenIncidents locks and returns the incidents of the channels that are open or that ended after
// the given time. For each day starting with the day of since, it also returns the unknown outcomes
// of the channels and the published posts. If pg.IsLocked returns true for the error, another
// transaction has locked one of them.
func OpenIncidents(
	ctx context.Context, tx *db.Tx, channels []publishing.ChannelID, since, ended time.Time,
) ([]publishing.Notification, error) {
	rows, err := tx.Query(ctx, openIncidents, tx.Org, db.UUIDs(channels), since.UTC().Truncate(24*time.Hour), ended)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[publishing.Notification])
}

const notificationsDelete = `-- publishing.NotificationsDelete
delete from notification where org_id = $1 and id = any ($2)`

const notificationUpdate = `-- publishing.NotificationUpdate
update notification set post_id = $3, code = $4, reason = $5, posts = $6, last_at = $7, closed_at = $8, mail_at = $9,
  channel_id = $10, mailed_posts = $11, reopened = $12, earlier_posts = $13
where org_id = $1 and id = $2`

const notificationInsert = `-- publishing.NotificationInsert
insert into notification (org_id, id, kind, channel_id, approval_id, answer, person_id, post_id, code, reason, posts,
  created_at, last_at, closed_at, mail_at, mailed_posts)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`

const notificationPostsAdd = `-- publishing.NotificationPostsAdd
insert into notification_posts as p (org_id, notification_id, channel_id, posts)
select $1, x.notification_id, x.channel_id, x.posts
from unnest($2::uuid[], $3::uuid[], $4::integer[]) x (notification_id, channel_id, posts)
on conflict (org_id, notification_id, channel_id) do update set posts = p.posts + excluded.posts`

// notificationsTrim deletes a bounded number of rows; the next call continues.
const notificationsTrim = `-- publishing.NotificationsTrim
delete from notification where org_id = $1 and id in (
  select n.id from notification n where n.org_id = $1 order by n.last_at desc, n.id desc offset $2 limit $3)`

// trimAtOnce bounds how many old notifications a transaction that adds some deletes.
const trimAtOnce = 1000

// SaveIncidents stores changes of incidents and keeps the number of notifications within
// publishing.MaxNotifications. LastAt of the incidents must come from ActivityTime.
func SaveIncidents(ctx context.Context, tx *db.Tx, c IncidentChanges) error {
	b := &pgx.Batch{}
	if len(c.Deleted) > 0 {
		b.Queue(notificationsDelete, tx.Org, db.UUIDs(c.Deleted))
	}
	for _, n := range c.Changed {
		b.Queue(notificationUpdate, tx.Org, n.ID, n.Post, n.Code, n.Reason, n.Posts, n.LastAt, n.ClosedAt,
			n.MailAt, n.Channel, n.MailedPosts, n.Reopened, n.EarlierPosts)
	}
	for _, n := range c.Begun {
		queueNotification(tx, b, n)
	}
	queuePublished(tx, b, c.Published)
	if len(c.Begun) > 0 {
		b.Queue(notificationsTrim, tx.Org, publishing.MaxNotifications, trimAtOnce)
	}
	return tx.SendBatch(ctx, b).Close()
}

const incidentsLock = `-- publishing.IncidentsLock
select pg_advisory_xact_lock(hashtextextended('incidents/' || $1, 0))`

// AddNotification stores a notification as SaveIncidents does. It waits for any transaction that
// counts the organization's events or adds a notification, and may move Notification.LastAt as
// ActivityTime does.
func AddNotification(ctx context.Context, tx *db.Tx, n publishing.Notification) (err error) {
	if _, err := tx.Exec(ctx, incidentsLock, tx.Org.String()); err != nil {
		return err
	}
	if n.LastAt, err = ActivityTime(ctx, tx, n.LastAt); err != nil {
		return err
	}
	return SaveIncidents(ctx, tx, IncidentChanges{Begun: []publishing.Notification{n}})
}

func queuePublished(tx *db.Tx, b *pgx.Batch, list []ChannelPosts) {
	if len(list) == 0 {
		return
	}
	of, channels, posts := make([]publishing.NotificationID, len(list)), make([]publishing.ChannelID, len(list)), make([]int, len(list))
	for i, p := range list {
		of[i], channels[i], posts[i] = p.Notification, p.Channel, p.Posts
	}
	b.Queue(notificationPostsAdd, tx.Org, db.UUIDs(of), db.UUIDs(channels), posts)
}

func queueNotification(tx *db.Tx, b *pgx.Batch, n publishing.Notification) {
	b.Queue(notificationInsert, tx.Org, n.ID, n.Kind, n.Channel, n.Approval, n.Answer,
		n.Person, n.Post, n.Code, n.Reason, n.Posts, n.CreatedAt, n.LastAt, n.ClosedAt, n.MailAt, n.MailedPosts)
}
