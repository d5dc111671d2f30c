package store

import (
	"context"
	_ "embed"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"crier/platform/jobs"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

const webhookEventInsert = `-- publishing.WebhookEventInsert
insert into webhook_event (org_id, event, post_id, data)
select $1, $2, $3, $4::jsonb where exists (select from webhook w where w.org_id = $1 and w.disabled_at is null)`

// AddWebhookEvent records an event about a thread for the organization's endpoints. post is the
// thread's first post. data is encoded as JSON and becomes the body's approval member.
// AddWebhookEvent does nothing if the organization has no enabled endpoint. Changes to a post's
// state are recorded by the post_webhook trigger instead.
func AddWebhookEvent(
	ctx context.Context, tx *db.Tx, event publishing.WebhookEvent, post publishing.PostID, data any,
) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, webhookEventInsert, tx.Org, event, post, string(raw))
	return err
}

// webhookOrgs reads one event per organization. It uses the index to skip from one organization to
// the next.
const webhookOrgs = `-- publishing.WebhookOrgs
with recursive org as (
  (select e.org_id from webhook_event e where e.org_id > $1 order by e.org_id limit 1)
  union all
  select (select e.org_id from webhook_event e where e.org_id > o.org_id order by e.org_id limit 1)
  from org o where o.org_id is not null)
select o.org_id from org o where o.org_id is not null limit $2`

// WebhookOrgs returns the organizations that have events for which no deliveries have been written.
// They are ordered by id, starting after the given organization. If after is zero, the result
// starts with the first organization.
func WebhookOrgs(ctx context.Context, d *db.DB, after tenancy.OrgID, limit int) (out []tenancy.OrgID, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(webhookOrgs, pgtype.UUID{Bytes: after.UUID(), Valid: true}, limit).
			Query(db.Into(&out, pgx.RowTo[tenancy.OrgID]))
	})
	return out, err
}

//go:embed sql/webhook_sources.sql
var webhookSources string

// WebhookSource is an event with the fields of its post that appear in the body.
type WebhookSource struct {
	ID           int64                   `db:"id"`
	At           time.Time               `db:"at"`
	Event        publishing.WebhookEvent `db:"event"`
	Post         publishing.PostID       `db:"post_id"`
	Data         []byte                  `db:"data"`
	State        string                  `db:"state"`
	Error        *string                 `db:"error"`
	ErrorCode    *string                 `db:"error_code"`
	Group        publishing.GroupID      `db:"group_id"`
	Channel      publishing.ChannelID    `db:"channel_id"`
	PublishDate  *time.Time              `db:"publish_date"`
	ReleaseID    *string                 `db:"release_id"`
	ReleaseURL   *string                 `db:"release_url"`
	Content      string                  `db:"content"`
	HTML         bool                    `db:"html"`
	ChannelName  string                  `db:"channel_name"`
	Connector    string                  `db:"connector"`
	Picture      string                  `db:"picture"`
	Customer     publishing.CustomerID   `db:"customer_id"`
	CustomerName *string                 `db:"customer_name"`
}

// WebhookSources locks and returns the organization's oldest events, excluding the events in
// except. An event's Group is zero if its post no longer exists.
func WebhookSources(ctx context.Context, tx *db.Tx, most int, except []int64) ([]WebhookSource, error) {
	rows, err := tx.Query(ctx, webhookSources, tx.Org, most, append([]int64{}, except...))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[WebhookSource])
}

var webhooksEnabled = `-- publishing.WebhooksEnabled
select ` + webhookColumns + ` from webhook w where w.disabled_at is null order by w.id for no key update`

// LockEnabledWebhooks locks and returns the organization's enabled endpoints.
func LockEnabledWebhooks(ctx context.Context, tx *db.Tx) ([]publishing.Webhook, error) {
	rows, err := tx.Query(ctx, webhooksEnabled)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanWebhook)
}

// NewDelivery is an event to be delivered to one endpoint.
type NewDelivery struct {
	ID      publishing.DeliveryID
	Webhook publishing.WebhookID
	Event   publishing.WebhookEvent
	// Post is zero for a test.
	Post publishing.PostID
	Body string
}

//go:embed sql/webhook_deliveries.sql
var webhookDeliveries string

const deliveriesGivenUp = `-- publishing.DeliveriesGivenUp
update webhook_delivery d set state = 'failed', next_at = null, ended_at = $2, error = $3
from webhook w
where w.id = any ($1) and d.org_id = w.org_id and d.webhook_id = w.id and d.number <= w.last_number - $4
  and d.state = 'pending'`

const deliveriesTrim = `-- publishing.DeliveriesTrim
delete from webhook_delivery d using webhook w
where w.id = any ($1) and d.org_id = w.org_id and d.webhook_id = w.id and d.number <= w.last_number - $2`

// AddDeliveries inserts deliveries for locked endpoints. For each endpoint, only the newest
// publishing.MaxWebhookPending deliveries may be pending. Older pending deliveries are abandoned,
// and reason is recorded as a human-readable explanation. Only the newest publishing.MaxWebhookLog
// deliveries are kept; older ones are deleted.
func AddDeliveries(ctx context.Context, tx *db.Tx, list []NewDelivery, now time.Time, reason string) error {
	if len(list) == 0 {
		return nil
	}
	n := len(list)
	ids, hooks, posts := make([][16]byte, n), make([][16]byte, n), make([]pgtype.UUID, n)
	events, bodies := make([]string, n), make([]string, n)
	for i, d := range list {
		ids[i], hooks[i], events[i], bodies[i] = d.ID.UUID(), d.Webhook.UUID(), string(d.Event), d.Body
		posts[i] = pgtype.UUID{Bytes: d.Post.UUID(), Valid: !d.Post.IsZero()}
	}
	b := &pgx.Batch{}
	b.Queue(webhookDeliveries, tx.Org, ids, hooks, events, posts, bodies, now)
	b.Queue(deliveriesGivenUp, hooks, now, reason, publishing.MaxWebhookPending)
	b.Queue(deliveriesTrim, hooks, publishing.MaxWebhookLog)
	return tx.SendBatch(ctx, b).Close()
}

const webhookEventsDelete = `-- publishing.WebhookEventsDelete
delete from webhook_event where org_id = $1 and id = any ($2)`

// DeleteWebhookEvents deletes events that have been dropped or whose deliveries have been written.
func DeleteWebhookEvents(ctx context.Context, tx *db.Tx, events []int64) error {
	_, err := tx.Exec(ctx, webhookEventsDelete, tx.Org, events)
	return err
}

//go:embed sql/webhook_due.sql
var webhookDue string

// DueWebhook is an endpoint with something to send.
type DueWebhook struct {
	Org     tenancy.OrgID        `db:"org_id"`
	Webhook publishing.WebhookID `db:"id"`
}

// WebhookShares limits how many endpoints are in progress at a time. Working endpoints and
// endpoints set aside are counted separately.
type WebhookShares struct {
	// PerCreator is the total limit for all organizations that one person created.
	PerOrg, PerCreator int
}

// dueFirst is the number of endpoints that DueWebhooks considers, beginning with those that have
// been due the longest. It applies separately to working endpoints and to endpoints set aside.
const dueFirst = 1000

// DueWebhooks returns at most limit endpoints that have something to send and no task, without
// exceeding shares. It considers only the dueFirst endpoints that have been due the longest, and
// the endpoints of the organizations listed in turns.
func DueWebhooks(
	ctx context.Context, d *db.DB, now time.Time, shares WebhookShares, turns []tenancy.OrgID, limit int,
) (out []DueWebhook, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(webhookDue, now, shares.PerOrg, shares.PerCreator, dueFirst, db.UUIDs(turns), limit).
			Query(db.Into(&out, pgx.RowToStructByName[DueWebhook]))
	})
	return out, err
}

//go:embed sql/webhook_turns.sql
var webhookTurns string

// WebhookTurns returns organizations that have something to send now or later, ordered by id,
// starting after the given organization. These organizations get a turn, so that they are not
// delayed by organizations whose endpoints have been due for longer. If DueWebhooks considers all
// due endpoints anyway, WebhookTurns returns no organizations.
func WebhookTurns(
	ctx context.Context, d *db.DB, now time.Time, after tenancy.OrgID, limit int,
) (out []tenancy.OrgID, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(webhookTurns, now, dueFirst, pgtype.UUID{Bytes: after.UUID(), Valid: true}, limit).
			Query(db.Into(&out, pgx.RowTo[tenancy.OrgID]))
	})
	return out, err
}

const webhooksPostpone = `-- publishing.WebhooksPostpone
update webhook set next_at = $2 where next_at <= $1`

const webhooksTake = `-- publishing.WebhooksTake
update webhook w set queued_until = $3
where w.id = any ($1) and w.next_at <= $2 and coalesce(w.queued_until <= $2, true)
  and coalesce(w.running_until <= $2, true)
returning w.id, w.aside`

type takenWebhook struct {
	ID    publishing.WebhookID `db:"id"`
	Aside bool                 `db:"aside"`
}

// QueueWebhooks adds a task for each endpoint that still needs one. healthy and aside are the kinds
// of tasks for working endpoints and for endpoints set aside. until is the earliest time at which
// any process may add another task for these endpoints. If the organization is suspended or
// deleted, QueueWebhooks adds no tasks. Instead, it postpones the organization's due endpoints.
// later is when they are due again.
func QueueWebhooks(
	ctx context.Context, tx *db.Tx, queue *jobs.Queue, webhooks []publishing.WebhookID, healthy, aside string,
	now, until, later time.Time,
) error {
	var active bool
	if err := tx.QueryRow(ctx, db.OrgActive, tx.Org).Scan(&active); err != nil {
		return err
	}
	if !active {
		_, err := tx.Exec(ctx, webhooksPostpone, now, later)
		return err
	}
	rows, err := tx.Query(ctx, webhooksTake, db.UUIDs(webhooks), now, until)
	if err != nil {
		return err
	}
	taken, err := pgx.CollectRows(rows, pgx.RowToStructByName[takenWebhook])
	if err != nil {
		return err
	}
	for _, w := range taken {
		task := jobs.Task{Kind: healthy, Org: tx.Org.UUID(), ID: w.ID.UUID()}
		if w.Aside {
			task.Kind = aside
		}
		if err := queue.Add(ctx, tx, task); err != nil {
			return err
		}
	}
	return nil
}
