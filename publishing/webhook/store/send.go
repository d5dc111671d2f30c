package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// WebhookTurn is an endpoint's state at the start of its turn.
type WebhookTurn struct {
	Name string `db:"name"`
	// Creator is the person who created the organization, or the organization itself if that person
	// is unknown.
	Creator uuid.UUID `db:"creator"`
	Failing bool      `db:"failing"`
	// Aside is set for an endpoint that is served by separate workers because it is failing, is
	// slow, or has never succeeded.
	Aside bool `db:"aside"`
}

const webhookBegin = `-- publishing.WebhookBegin
update webhook w set running_until = $3, queued_until = null
from organization o
where w.id = $1 and o.id = w.org_id and coalesce(w.running_until <= $2, true)
returning w.name, coalesce(o.created_by, o.id) as creator, w.failing_since is not null as failing, w.aside`

// BeginWebhook gives this process the exclusive right to send to an endpoint until the given time.
// It returns false if the endpoint does not exist or another process has this right.
func BeginWebhook(
	ctx context.Context, d *db.DB, org tenancy.OrgID, webhook publishing.WebhookID, now, until time.Time,
) (turn WebhookTurn, found bool, err error) {
	var rows []WebhookTurn
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(webhookBegin, webhook, now, until).Query(db.Into(&rows, pgx.RowToStructByName[WebhookTurn]))
	})
	if err != nil || len(rows) == 0 {
		return turn, false, err
	}
	return rows[0], true, nil
}

// DueDelivery is a delivery to send now.
type DueDelivery struct {
	ID    publishing.DeliveryID   `db:"id"`
	Event publishing.WebhookEvent `db:"event"`
	Body  string                  `db:"body"`
	// Attempts is the number of earlier calls, and PlannedFrom is the number of calls before the
	// last replay.
	Attempts    int `db:"attempts"`
	PlannedFrom int `db:"planned_from"`
}

const deliveriesDue = `-- publishing.DeliveriesDue
select d.id, d.event, d.body, d.attempts, d.planned_from from webhook_delivery d
join webhook w on w.org_id = d.org_id and w.id = d.webhook_id
join organization o on o.id = d.org_id
where d.webhook_id = $1 and d.state = 'pending' and d.next_at <= $2 and coalesce(w.not_before <= $2, true)
  and o.suspended_at is null and o.deleted_at is null
order by d.next_at, d.number limit $3`

// DueDeliveries returns an endpoint's deliveries that may be sent, beginning with the one that has
// been due the longest. It returns none during a pause that the endpoint requested, or if the
// organization is suspended or deleted.
func DueDeliveries(
	ctx context.Context, d *db.DB, org tenancy.OrgID, webhook publishing.WebhookID, now time.Time, limit int,
) (out []DueDelivery, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(deliveriesDue, webhook, now, limit).Query(db.Into(&out, pgx.RowToStructByName[DueDelivery]))
	})
	return out, err
}

// WebhookTarget is the URL to which a delivery is sent and the keys that sign it.
type WebhookTarget struct {
	URL string `db:"url"`
	// Keys are the sealed signing keys: the current key, and each earlier key that has not expired.
	Keys [][]byte `db:"keys"`
}

const deliveryTarget = `-- publishing.DeliveryTarget
select w.url, array_prepend(w.signing_key, array(
  select k.key from webhook_old_key k where k.org_id = w.org_id and k.webhook_id = w.id and k.ends_at > $4
  order by k.ends_at desc)) as keys
from webhook_delivery d
join webhook w on w.org_id = d.org_id and w.id = d.webhook_id
join organization o on o.id = d.org_id
where d.webhook_id = $1 and d.id = $2 and d.state = 'pending' and d.attempts = $3
  and (w.disabled_at is null or d.event = 'webhook.test') and o.suspended_at is null and o.deleted_at is null`

// DeliveryTarget returns a delivery's current target. It returns false if the endpoint was deleted
// or disabled, or if the organization is suspended or deleted. It also returns false if the
// delivery was abandoned or sent after the caller read it. In all of these cases, the delivery must
// not be sent.
func DeliveryTarget(
	ctx context.Context, s *db.DB, org tenancy.OrgID, webhook publishing.WebhookID, d DueDelivery, now time.Time,
) (target WebhookTarget, found bool, err error) {
	var rows []WebhookTarget
	err = s.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(deliveryTarget, webhook, d.ID, d.Attempts, now).Query(
			db.Into(&rows, pgx.RowToStructByName[WebhookTarget]),
		)
	})
	if err != nil || len(rows) == 0 {
		return target, false, err
	}
	return rows[0], true, nil
}

// AttemptResult is the outcome of an attempt, and its consequences for the delivery and the
// endpoint.
type AttemptResult struct {
	Delivery publishing.DeliveryID
	// URL is the URL that was called. If the endpoint now has a different URL, the result does not
	// affect the endpoint.
	URL     string
	Attempt publishing.WebhookAttempt
	State   publishing.DeliveryState
	// NextAt is nil unless State is pending.
	NextAt *time.Time
	// Error explains why the delivery was abandoned. It is "" if the attempt's error is a
	// sufficient explanation.
	Error string
	// IsTest is set for a test delivery, which says nothing about the endpoint's health.
	IsTest bool
	// SlowUntil is set if the call was slow. The endpoint counts as slow until this time.
	SlowUntil *time.Time
	// NotBefore is the end of the pause that the endpoint requested, or nil if it requested none.
	NotBefore *time.Time
}

// The attempt number serves as a fencing token: an attempt by a process that was presumed dead
// changes nothing once another attempt is stored.
const deliverySave = `-- publishing.DeliverySave
update webhook_delivery d set attempts = $3, state = $4, next_at = $5, error = nullif($6, ''),
  ended_at = case when $4 = 'pending' then null else $7::timestamptz end,
  log = case when jsonb_array_length(d.log) >= $9 then d.log - 0 else d.log end || $8::jsonb
where d.webhook_id = $1 and d.id = $2 and d.state = 'pending' and d.attempts = $3 - 1`

// webhookWorks marks an endpoint as working. It writes nothing if the endpoint was already working.
const webhookWorks = `-- publishing.WebhookWorks
update webhook w set failing_since = null, not_before = null, slow_until = coalesce($4, w.slow_until),
  aside = coalesce(coalesce($4, w.slow_until) > $3, false)
where w.id = $1 and w.url = $2 and (w.failing_since is not null or w.not_before is not null
  or $4::timestamptz is not null or w.aside and coalesce(w.slow_until <= $3, true))`

const webhookFails = `-- publishing.WebhookFails
update webhook w set failing_since = coalesce(w.failing_since, $3), not_before = greatest(w.not_before, $4),
  slow_until = coalesce($5, w.slow_until), aside = true
where w.id = $1 and w.url = $2`

// webhookTested updates the endpoint after a test delivery. A successful test does not show that
// the endpoint is healthy, but it can be the endpoint's first success.
const webhookTested = `-- publishing.WebhookTested
update webhook w set slow_until = coalesce($4, w.slow_until),
  aside = $4::timestamptz is not null or w.aside
    and not ($5 and w.failing_since is null and coalesce(w.slow_until <= $3, true))
where w.id = $1 and w.url = $2 and (w.aside or $4::timestamptz is not null)`

const webhookFailing = `-- publishing.WebhookFailing
select w.failing_since from webhook w where w.id = $1 and w.url = $2`

// SaveAttempt stores an attempt and updates the endpoint, unless the endpoint now has a different
// URL. It returns the time at which the endpoint began to fail, or nil if the endpoint works.
func SaveAttempt(
	ctx context.Context, d *db.DB, org tenancy.OrgID, webhook publishing.WebhookID, r AttemptResult, now time.Time,
) (failing *time.Time, err error) {
	attempt, err := json.Marshal([]publishing.WebhookAttempt{r.Attempt})
	if err != nil {
		return nil, err
	}
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(deliverySave, webhook, r.Delivery, r.Attempt.Number, r.State, r.NextAt, r.Error, now, string(attempt),
			publishing.MaxWebhookAttempts)
		switch {
		case r.IsTest:
			b.Queue(webhookTested, webhook, r.URL, now, r.SlowUntil, r.State == publishing.DeliveryDelivered)
		case r.State == publishing.DeliveryDelivered:
			b.Queue(webhookWorks, webhook, r.URL, now, r.SlowUntil)
		default:
			b.Queue(webhookFails, webhook, r.URL, now, r.NotBefore, r.SlowUntil)
			b.Queue(webhookFailing, webhook, r.URL).Query(func(rows pgx.Rows) error {
				list, err := pgx.CollectRows(rows, pgx.RowTo[*time.Time])
				failing = append(list, nil)[0] // no row: the endpoint was deleted or has a new URL
				return err
			})
		}
	})
	return failing, err
}

const webhookEnd = `-- publishing.WebhookEnd
update webhook w set running_until = null, next_at = (
  select greatest(min(d.next_at), w.not_before, $2) from webhook_delivery d
  where d.webhook_id = $1 and d.state = 'pending' having count(*) > 0)
where w.id = $1`

// webhookHold locks the endpoint. It is a separate statement, so that the next statement sees
// deliveries that were added while the transaction waited for the lock.
const webhookHold = `-- publishing.WebhookHold
select from webhook w where w.id = $1 for no key update`

// EndWebhook releases an endpoint so that other processes can send to it. It stores the time at
// which the next delivery is due, which is no earlier than notBefore or the end of a pause that the
// endpoint requested.
func EndWebhook(
	ctx context.Context, d *db.DB, org tenancy.OrgID, webhook publishing.WebhookID, notBefore time.Time,
) error {
	return d.InOrg(ctx, org, func(tx *db.Tx) error {
		b := &pgx.Batch{}
		b.Queue(webhookHold, webhook)
		b.Queue(webhookEnd, webhook, notBefore)
		return tx.SendBatch(ctx, b).Close()
	})
}

const webhookDisable = `-- publishing.WebhookDisable
update webhook set disabled_at = $2, disabled_for = $3, updated_at = $2
where id = $1 and url = $4 and disabled_at is null`

// DisableWebhook disables an endpoint that still has the given URL and abandons its pending
// deliveries. explanation is shown to users. DisableWebhook returns false if the endpoint is
// already disabled, no longer exists, or has a different URL.
func DisableWebhook(
	ctx context.Context, tx *db.Tx, webhook publishing.WebhookID, url string, reason publishing.WebhookDisabled,
	explanation string, now time.Time,
) (done bool, err error) {
	tag, err := tx.Exec(ctx, webhookDisable, webhook, now, reason, url)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	return true, StopDeliveries(ctx, tx, webhook, now, explanation)
}
