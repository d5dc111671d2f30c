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

// incidentOrgs skips through the index from one organization to the next and reads only one event
// per organization.
const incidentOrgs = `-- publishing.IncidentOrgs
with recursive org as (
  (select e.org_id from incident_event e where e.org_id > $1 order by e.org_id limit 1)
  union all
  select (select e.org_id from incident_event e where e.org_id > o.org_id order by e.org_id limit 1)
  from org o where o.org_id is not null)
select o.org_id from org o where o.org_id is not null limit $2`

// IncidentOrgs returns the organizations that have uncounted events, ordered by id, starting after
// the given organization. If after is zero, it starts with the first one.
func IncidentOrgs(ctx context.Context, d *db.DB, after tenancy.OrgID, limit int) (out []tenancy.OrgID, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(incidentOrgs, pgtype.UUID{Bytes: after.UUID(), Valid: true}, limit).
			Query(db.Into(&out, pgx.RowTo[tenancy.OrgID]))
	})
	return out, err
}

// mailOrgs is like incidentOrgs, but for notifications whose emails are due. It scans the
// notification_mail index at most once and stops at the limit.
const mailOrgs = `-- publishing.MailOrgs
with recursive org as (
  (select n.org_id from notification n where n.mail_at <= $2 and n.org_id > $1 order by n.org_id limit 1)
  union all
  select (select n.org_id from notification n where n.mail_at <= $2 and n.org_id > o.org_id order by n.org_id limit 1)
  from org o where o.org_id is not null)
select o.org_id from org o where o.org_id is not null limit $3`

// MailOrgs returns the organizations that have notifications with due emails, ordered by id,
// starting after the given organization.
func MailOrgs(
	ctx context.Context, d *db.DB, after tenancy.OrgID, now time.Time, limit int,
) (out []tenancy.OrgID, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(mailOrgs, pgtype.UUID{Bytes: after.UUID(), Valid: true}, now, limit).
			Query(db.Into(&out, pgx.RowTo[tenancy.OrgID]))
	})
	return out, err
}

// incidentBacklog reads a limited number of rows, so that it stays cheap when many events are
// waiting.
const incidentBacklog = `-- publishing.IncidentBacklog
select count(*), coalesce(extract(epoch from clock_timestamp() - min(e.at)), 0)::bigint
from (select at from incident_event limit $1) e`

// IncidentBacklog returns how many events are waiting to be counted, up to limit, and the age of
// the oldest one in seconds.
func IncidentBacklog(ctx context.Context, d *db.DB, limit int) (rows, seconds int64, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(incidentBacklog, limit).QueryRow(func(row pgx.Row) error { return row.Scan(&rows, &seconds) })
	})
	return rows, seconds, err
}

const incidentsTryLock = `-- publishing.IncidentsTryLock
select pg_try_advisory_xact_lock(hashtextextended('incidents/' || $1, 0)) and set_config('lock_timeout', '100ms', true) <> ''`

// TryLockIncidents tries to take the lock that a transaction needs to count an organization's
// events or add a notification. It returns false if another transaction holds the lock. The rest of
// the transaction waits for any other lock for at most 100 ms, so that one organization does not
// delay the others.
func TryLockIncidents(ctx context.Context, tx *db.Tx) (got bool, err error) {
	err = tx.QueryRow(ctx, incidentsTryLock, tx.Org.String()).Scan(&got)
	return got, err
}

const activityTime = `-- publishing.ActivityTime
select greatest($2::timestamptz, (select n.last_at + interval '1 microsecond' from notification n
  where n.org_id = $1 order by n.last_at desc, n.id desc limit 1))`

// ActivityTime returns the time to store as LastAt for new activity. This is now or one microsecond
// after the organization's latest LastAt, whichever is later. New activity therefore never falls
// into a period that a reader has already read. The transaction must hold the lock that
// TryLockIncidents takes.
func ActivityTime(ctx context.Context, tx *db.Tx, now time.Time) (at time.Time, err error) {
	err = tx.QueryRow(ctx, activityTime, tx.Org, now).Scan(&at)
	return at, err
}

// IncidentEvent is an event that is counted in an incident.
type IncidentEvent struct {
	ID      int64                        `db:"id"`
	At      time.Time                    `db:"at"`
	Kind    publishing.IncidentEventKind `db:"kind"`
	Channel publishing.ChannelID         `db:"channel_id"`
	// Post is zero for an event that concerns only the channel.
	Post publishing.PostID `db:"post_id"`
	// Code and Reason say why the post failed, or why the channel must be reconnected. Reason is
	// shown to users.
	Code   *string `db:"code"`
	Reason *string `db:"reason"`
}

// ChannelPosts counts one channel's posts in a notification about several channels.
type ChannelPosts struct {
	Notification publishing.NotificationID
	Channel      publishing.ChannelID
	Posts        int
}

// IncidentChanges holds the changes that SaveIncidents stores.
type IncidentChanges struct {
	// Deleted is applied first, then Changed, and then Begun, because a channel can have only one
	// open incident of each kind.
	Deleted []publishing.NotificationID
	Changed []publishing.Notification
	Begun   []publishing.Notification
	// Published holds how many posts to add to each channel's count.
	Published []ChannelPosts
}

const incidentEvents = `-- publishing.IncidentEvents
select e.id, e.at, e.kind, e.channel_id, e.post_id, e.code, e.reason from incident_event e
where e.org_id = $1 order by e.id limit $2 for update skip locked`

// IncidentEvents locks and returns the organization's oldest events.
func IncidentEvents(ctx context.Context, tx *db.Tx, most int) ([]IncidentEvent, error) {
	rows, err := tx.Query(ctx, incidentEvents, tx.Org, most)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[IncidentEvent])
}

const incidentEventsDelete = `-- publishing.IncidentEventsDelete
delete from incident_event where org_id = $1 and id = any ($2) returning id`

// DeleteIncidentEvents deletes events and returns the ids of the events that it deleted. The
// transaction may count only these events, because another transaction has counted the others.
func DeleteIncidentEvents(ctx context.Context, tx *db.Tx, events []int64) ([]int64, error) {
	rows, err := tx.Query(ctx, incidentEventsDelete, tx.Org, events)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

var notificationColumns = db.Columns[publishing.Notification]("n")

// openIncidents fails instead of waiting for a locked row. The organization is then handled in the
// next round.
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

// OpenIncidents locks and returns the channels' incidents that are open or that ended after the
// given time. It also returns the channels' incidents about unknown outcomes and the organization's
// notifications about published posts, if they began on or after the UTC day that contains since.
//
// If another transaction has locked one of these incidents, OpenIncidents returns an error for
// which pg.IsLocked is true.
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

// notificationsTrim deletes a limited number of rows. The next call deletes more.
const notificationsTrim = `-- publishing.NotificationsTrim
delete from notification where org_id = $1 and id in (
  select n.id from notification n where n.org_id = $1 order by n.last_at desc, n.id desc offset $2 limit $3)`

// trimAtOnce is the maximum number of old notifications that one call to SaveIncidents deletes.
const trimAtOnce = 1000

// SaveIncidents stores incident changes. If there are more than publishing.MaxNotifications
// notifications, it deletes the oldest ones. The LastAt of each incident must come from
// ActivityTime.
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

// AddNotification inserts a notification with SaveIncidents and adjusts its LastAt with
// ActivityTime. It first waits for any transaction that is counting the organization's events or
// adding a notification.
func AddNotification(ctx context.Context, tx *db.Tx, n publishing.Notification) error {
	if _, err := tx.Exec(ctx, incidentsLock, tx.Org.String()); err != nil {
		return err
	}
	return tx.Whole(ctx, func(ctx context.Context) (err error) {
		if n.LastAt, err = ActivityTime(ctx, tx, n.LastAt); err != nil {
			return err
		}
		return SaveIncidents(ctx, tx, IncidentChanges{Begun: []publishing.Notification{n}})
	})
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
