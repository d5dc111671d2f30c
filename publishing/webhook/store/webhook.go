// Package store reads and writes the rows of webhooks, webhook events and deliveries. Only the
// parent package uses it.
package store

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// webhookRow is a row of the webhook table. It must have the same fields as publishing.Webhook, to
// which it is converted.
type webhookRow struct {
	ID           publishing.WebhookID        `db:"id"`
	Name         string                      `db:"name"`
	URL          string                      `db:"url"`
	Events       []publishing.WebhookEvent   `db:"events"`
	Integrations []publishing.ChannelID      `db:"integrations"`
	CreatedAt    time.Time                   `db:"created_at"`
	UpdatedAt    time.Time                   `db:"updated_at"`
	DisabledAt   *time.Time                  `db:"disabled_at"`
	DisabledFor  *publishing.WebhookDisabled `db:"disabled_for"`
	FailingSince *time.Time                  `db:"failing_since"`
	// PreviousUntil must be read in a separate statement after a lock; see LockWebhook.
	PreviousUntil []time.Time `db:"previous_until" sql:"array(select k.ends_at from webhook_old_key k where k.org_id = w.org_id and k.webhook_id = w.id order by k.ends_at)"`
}

var webhookColumns = db.Columns[webhookRow]("w")

func scanWebhook(row pgx.CollectableRow) (publishing.Webhook, error) {
	r, err := pgx.RowToStructByName[webhookRow](row)
	return publishing.Webhook(r), err
}

var webhookList = `-- publishing.WebhookList
select ` + webhookColumns + ` from webhook w order by w.created_at, w.id limit $1`

// webhookChannels also reads disconnected channels.
var webhookChannels = `-- publishing.WebhookChannels
select ` + db.ChannelColumns + `
from channel c left join customer u on u.org_id = c.org_id and u.id = c.customer_id
where c.id in (select unnest(w.integrations) from webhook w)`

// Webhooks returns an organization's endpoints, oldest first, with the channels selected for each.
func Webhooks(ctx context.Context, d *db.DB, org tenancy.OrgID) ([]publishing.WebhookRecord, error) {
	var hooks []publishing.Webhook
	var channels []publishing.Channel
	err := d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(webhookList, publishing.MaxWebhooks).Query(db.Into(&hooks, scanWebhook))
		b.Queue(webhookChannels).Query(db.Into(&channels, db.ScanChannel))
	})
	out := make([]publishing.WebhookRecord, len(hooks))
	for i, h := range hooks {
		out[i].Webhook = h
		for _, c := range channels {
			if slices.Contains(h.Integrations, c.ID) {
				out[i].Channels = append(out[i].Channels, c)
			}
		}
	}
	return out, err
}

const webhookCount = `-- publishing.WebhookCount
select count(*) from webhook`

const webhookInsert = `-- publishing.WebhookInsert
insert into webhook (org_id, id, name, url, events, integrations, signing_key, created_at, updated_at,
  disabled_at, disabled_for, created_by, known_to)
values ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10, $11, array_remove(array[$11::uuid], null))`

// CountWebhooks returns the number of the organization's endpoints. It locks the organization until
// the transaction ends, so that two transactions cannot count at the same time.
func CountWebhooks(ctx context.Context, tx *db.Tx) (n int, err error) {
	if _, err := db.LockOrganization(ctx, tx); err != nil {
		return 0, err
	}
	return n, tx.QueryRow(ctx, webhookCount).Scan(&n)
}

// AddWebhook inserts an endpoint with its sealed signing key. by is the person who created the
// endpoint, or zero if no person did.
func AddWebhook(ctx context.Context, tx *db.Tx, w publishing.Webhook, sealed []byte, by tenancy.PersonID) error {
	_, err := tx.Exec(ctx, webhookInsert, tx.Org, w.ID, w.Name, w.URL, db.Texts(w.Events), db.UUIDs(w.Integrations), sealed,
		w.CreatedAt, w.DisabledAt, w.DisabledFor, by)
	return err
}

const webhooksBy = `-- publishing.WebhooksBy
select id, name, url from webhook where created_by = $1 or $1 = any (known_to) order by created_at, id`

const webhooksDeleteBy = `-- publishing.WebhooksDeleteBy
delete from webhook where created_by = $1 or $1 = any (known_to) returning id, name, url`

const webhookKnownTo = `-- publishing.WebhookKnownTo
update webhook set known_to = array_append(known_to, $2) where id = $1 and not $2 = any (known_to)`

// WebhookKnownTo records that a person chose an endpoint's URL or one of its secrets. It does
// nothing if person is zero.
func WebhookKnownTo(ctx context.Context, tx *db.Tx, webhook publishing.WebhookID, person tenancy.PersonID) error {
	if person.IsZero() {
		return nil
	}
	_, err := tx.Exec(ctx, webhookKnownTo, webhook, person)
	return err
}

// WebhooksBy returns the endpoints that a person created, and those whose URL or secret the person
// chose. It runs in q's transaction and covers only that transaction's organization. If remove is
// true, it also deletes these endpoints. It is called in transactions begun by tenancy/member.
func WebhooksBy(
	ctx context.Context, q pg.Querier, person tenancy.PersonID, remove bool,
) ([]tenancy.CreatedWebhook, error) {
	sql := webhooksBy
	if remove {
		sql = webhooksDeleteBy
	}
	rows, err := q.Query(ctx, sql, person)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[tenancy.CreatedWebhook])
}

const channelsKnown = `-- publishing.ChannelsKnown
select count(*) from channel c where c.id = any ($1) and c.deleted_at is null`

// ChannelsConnected reports whether all the channels are connected and belong to the organization.
func ChannelsConnected(ctx context.Context, tx *db.Tx, channels []publishing.ChannelID) (bool, error) {
	var n int
	err := tx.QueryRow(ctx, channelsKnown, db.UUIDs(channels)).Scan(&n)
	return n == len(channels), err
}

var webhookRead = `-- publishing.WebhookRead
select ` + webhookColumns + ` from webhook w where w.id = $1`

// LockWebhook locks an endpoint until the transaction ends and returns the endpoint. It returns
// pgx.ErrNoRows if the endpoint does not exist. It reads the endpoint in a second statement, so
// that it sees what the previous holder of the lock wrote to other tables.
func LockWebhook(ctx context.Context, tx *db.Tx, webhook publishing.WebhookID) (w publishing.Webhook, err error) {
	b := &pgx.Batch{}
	b.Queue(webhookHold, webhook)
	b.Queue(webhookRead, webhook).Query(func(rows pgx.Rows) error {
		w, err = pgx.CollectExactlyOneRow(rows, scanWebhook)
		return err
	})
	return w, tx.SendBatch(ctx, b).Close()
}

// If a person enables an endpoint, its earlier failures no longer count. A new URL resets
// everything, because the responses from the previous URL and any pause that it requested say
// nothing about the new URL.
const webhookUpdate = `-- publishing.WebhookUpdate
update webhook w set name = $2, url = $3, events = $4, integrations = $5, updated_at = $6, disabled_at = $7,
  disabled_for = $8, failing_since = $9,
  not_before = case when $7::timestamptz is null and w.url = $3 then w.not_before end,
  aside = w.aside or w.url <> $3, slow_until = case when w.url = $3 then w.slow_until end,
  next_at = case when w.url = $3 then w.next_at else (
    select min(d.next_at) from webhook_delivery d
    where d.org_id = w.org_id and d.webhook_id = w.id and d.state = 'pending') end
where w.id = $1`

// UpdateWebhook stores the fields of a locked endpoint.
func UpdateWebhook(ctx context.Context, tx *db.Tx, w publishing.Webhook) error {
	_, err := tx.Exec(ctx, webhookUpdate, w.ID, w.Name, w.URL, db.Texts(w.Events), db.UUIDs(w.Integrations), w.UpdatedAt,
		w.DisabledAt, w.DisabledFor, w.FailingSince)
	return err
}

const webhookKey = `-- publishing.WebhookKey
select w.signing_key from webhook w where w.id = $1`

// WebhookKey returns an endpoint's sealed signing key, or pgx.ErrNoRows if there is no such
// endpoint.
func WebhookKey(ctx context.Context, tx *db.Tx, webhook publishing.WebhookID) (sealed []byte, err error) {
	return sealed, tx.QueryRow(ctx, webhookKey, webhook).Scan(&sealed)
}

const webhookKeepKey = `-- publishing.WebhookKeepKey
insert into webhook_old_key (org_id, id, webhook_id, key, ends_at)
select w.org_id, $2, w.id, w.signing_key, $3 from webhook w where w.id = $1`

const webhookRotate = `-- publishing.WebhookRotate
update webhook set signing_key = $2, updated_at = $3 where id = $1`

// RotateWebhook replaces a locked endpoint's signing key. Until the given time, deliveries are also
// signed with the previous key. Earlier keys keep their own end times.
func RotateWebhook(
	ctx context.Context, tx *db.Tx, webhook publishing.WebhookID, sealed []byte, until, now time.Time,
) error {
	b := &pgx.Batch{}
	b.Queue(webhookKeepKey, webhook, uuid.Must(uuid.NewV7()), until)
	b.Queue(webhookRotate, webhook, sealed, now)
	return tx.SendBatch(ctx, b).Close()
}

const webhookDelete = `-- publishing.WebhookDelete
delete from webhook where id = $1`

// DeleteWebhook deletes an endpoint with its deliveries. It returns false if there is no such
// endpoint.
func DeleteWebhook(ctx context.Context, tx *db.Tx, webhook publishing.WebhookID) (bool, error) {
	tag, err := tx.Exec(ctx, webhookDelete, webhook)
	return tag.RowsAffected() > 0, err
}

// webhookStopped marks an endpoint's pending deliveries as failed.
const webhookStopped = `-- publishing.WebhookStopped
update webhook_delivery set state = 'failed', next_at = null, ended_at = $2, error = $3
where webhook_id = $1 and state = 'pending'`

const webhookIdle = `-- publishing.WebhookIdle
update webhook set next_at = null where id = $1`

// StopDeliveries abandons an endpoint's pending deliveries. reason is shown to users.
func StopDeliveries(ctx context.Context, tx *db.Tx, webhook publishing.WebhookID, now time.Time, reason string) error {
	b := &pgx.Batch{}
	b.Queue(webhookStopped, webhook, now, reason)
	b.Queue(webhookIdle, webhook)
	return tx.SendBatch(ctx, b).Close()
}

type deliveryRow struct {
	ID        publishing.DeliveryID       `db:"id"`
	Event     publishing.WebhookEvent     `db:"event"`
	Post      publishing.PostID           `db:"post_id"`
	State     publishing.DeliveryState    `db:"state"`
	Attempts  int                         `db:"attempts"`
	NextAt    *time.Time                  `db:"next_at"`
	CreatedAt time.Time                   `db:"created_at"`
	EndedAt   *time.Time                  `db:"ended_at"`
	Error     *string                     `db:"error"`
	Log       []publishing.WebhookAttempt `db:"log"`
	Body      string                      `db:"body"`
}

var deliveryColumns = db.Columns[deliveryRow]("d")

func scanDelivery(row pgx.CollectableRow) (publishing.Delivery, error) {
	r, err := pgx.RowToStructByName[deliveryRow](row)
	return publishing.Delivery(r), err
}

const webhookKnown = `-- publishing.WebhookKnown
select exists (select from webhook where id = $1)`

var deliveryList = `-- publishing.DeliveryList
select ` + deliveryColumns + ` from webhook_delivery d
where d.webhook_id = $1 and ($2::uuid is null or d.number < (
  select x.number from webhook_delivery x where x.id = $2 and x.webhook_id = $1))
order by d.number desc limit $3`

// Deliveries returns an endpoint's newest deliveries. If before is not zero, it returns only
// deliveries that are older than before. known is false if the endpoint does not exist.
func Deliveries(
	ctx context.Context, d *db.DB, org tenancy.OrgID, webhook publishing.WebhookID, before publishing.DeliveryID,
	limit int,
) (out []publishing.Delivery, known bool, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(webhookKnown, webhook).QueryRow(func(row pgx.Row) error { return row.Scan(&known) })
		b.Queue(deliveryList, webhook, before, limit).Query(db.Into(&out, scanDelivery))
	})
	return out, known, err
}

// A pending delivery keeps its retry schedule; a delivery that has ended gets a new schedule.
const deliveryReplay = `-- publishing.DeliveryReplay
update webhook_delivery set state = 'pending', next_at = $3, ended_at = null, error = null,
  planned_from = case when state = 'pending' then planned_from else attempts end
where webhook_id = $1 and id = $2`

const webhookNext = `-- publishing.WebhookNext
update webhook set next_at = least(next_at, $2) where id = $1`

// Replay makes a delivery due now. It returns false if the endpoint has no such delivery.
func Replay(
	ctx context.Context, tx *db.Tx, webhook publishing.WebhookID, delivery publishing.DeliveryID, now time.Time,
) (found bool, err error) {
	b := &pgx.Batch{}
	b.Queue(deliveryReplay, webhook, delivery, now).Exec(func(tag pgconn.CommandTag) error {
		found = tag.RowsAffected() > 0
		return nil
	})
	b.Queue(webhookNext, webhook, now)
	return found, tx.SendBatch(ctx, b).Close()
}
