package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/publishing"
	"crier/tenancy"
)

// WebhookTarget is an endpoint that this process sends to.
type WebhookTarget struct {
	Name string `db:"name"`
	URL  string `db:"url"`
	// Key is the sealed signing key, and OldKey the one before, which also signs; null when there is none any more.
	Key     []byte `db:"signing_key"`
	OldKey  []byte `db:"old_key"`
	Failing bool   `db:"failing"`
	// Slow is set for a while after an answer that took long.
	Slow bool `db:"slow"`
}

const webhookBegin = `-- publishing.WebhookBegin
update webhook w set running_until = $3, queued_until = null
where w.id = $1 and coalesce(w.running_until <= $2, true)
returning w.name, w.url, w.signing_key, case when w.old_key_until > $2 then w.old_key end as old_key,
  w.failing_since is not null as failing, coalesce(w.slow_until > $2, false) as slow`

// BeginWebhook makes this process the only one that sends to an endpoint, until a time that SaveAttempt moves. It
// returns false when there is no such endpoint or another process has it.
func (s *Store) BeginWebhook(
	ctx context.Context, org tenancy.OrgID, webhook publishing.WebhookID, now, until time.Time,
) (target WebhookTarget, found bool, err error) {
	var rows []WebhookTarget
	err = s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(webhookBegin, webhook, now, until).Query(into(&rows, pgx.RowToStructByName[WebhookTarget]))
	})
	if err != nil || len(rows) == 0 {
		return target, false, err
	}
	return rows[0], true, nil
}

// DueDelivery is a delivery that is sent now.
type DueDelivery struct {
	ID    publishing.DeliveryID   `db:"id"`
	Event publishing.WebhookEvent `db:"event"`
	Body  string                  `db:"body"`
	// Attempts is the number of calls before, PlannedFrom that at the last replay.
	Attempts    int `db:"attempts"`
	PlannedFrom int `db:"planned_from"`
}

const deliveriesDue = `-- publishing.DeliveriesDue
select d.id, d.event, d.body, d.attempts, d.planned_from from webhook_delivery d
join webhook w on w.org_id = d.org_id and w.id = d.webhook_id
where d.webhook_id = $1 and d.state = 'pending' and d.next_at <= $2 and coalesce(w.not_before <= $2, true)
order by d.next_at, d.number limit $3`

// DueDeliveries returns deliveries of an endpoint that may be sent, the longest due first. It returns none while the
// endpoint has asked for a pause.
func (s *Store) DueDeliveries(
	ctx context.Context, org tenancy.OrgID, webhook publishing.WebhookID, now time.Time, limit int,
) (out []DueDelivery, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(deliveriesDue, webhook, now, limit).Query(into(&out, pgx.RowToStructByName[DueDelivery]))
	})
	return out, err
}

// AttemptResult is how one attempt ended, and what follows.
type AttemptResult struct {
	Delivery publishing.DeliveryID
	Attempt  publishing.WebhookAttempt
	State    publishing.DeliveryState
	// NextAt is nil unless State is pending.
	NextAt *time.Time
	// Error is why the delivery is given up, when that is more than the error of the attempt; "" for none.
	Error string
	// IsTest is set for a delivery that is no sign of the endpoint's health.
	IsTest bool
	// SlowUntil is set when the call took long: until then the endpoint counts as slow.
	SlowUntil *time.Time
	// NotBefore is the end of the pause that the endpoint asked for; nil for none.
	NotBefore *time.Time
}

// The number of the attempt is the fence: an attempt of a process that was taken for dead changes nothing once another
// one is stored.
const deliverySave = `-- publishing.DeliverySave
update webhook_delivery d set attempts = $3, state = $4, next_at = $5, error = nullif($6, ''),
  ended_at = case when $4 = 'pending' then null else $7::timestamptz end,
  log = case when jsonb_array_length(d.log) >= $9 then d.log - 0 else d.log end || $8::jsonb
where d.webhook_id = $1 and d.id = $2 and d.state = 'pending' and d.attempts = $3 - 1`

// webhookWorks writes nothing for an endpoint that goes on working, but for the extension of its time now and then.
const webhookWorks = `-- publishing.WebhookWorks
update webhook w set running_until = $2, failing_since = null, not_before = null,
  slow_until = coalesce($3, w.slow_until)
where w.id = $1 and (w.failing_since is not null or w.not_before is not null or $3::timestamptz is not null
  or w.running_until < $2::timestamptz - interval '5 seconds')`

const webhookFails = `-- publishing.WebhookFails
update webhook w set running_until = $2, failing_since = coalesce(w.failing_since, $3),
  not_before = greatest(w.not_before, $4), slow_until = coalesce($5, w.slow_until)
where w.id = $1`

const webhookExtend = `-- publishing.WebhookExtend
update webhook w set running_until = $2, slow_until = coalesce($3, w.slow_until) where w.id = $1`

const webhookFailing = `-- publishing.WebhookFailing
select w.failing_since from webhook w where w.id = $1`

// SaveAttempt stores an attempt and what it means for the endpoint, which this process then has until a time. It returns
// since when the endpoint fails, nil when it does not.
func (s *Store) SaveAttempt(
	ctx context.Context, org tenancy.OrgID, webhook publishing.WebhookID, r AttemptResult, now, until time.Time,
) (failing *time.Time, err error) {
	attempt, err := json.Marshal([]publishing.WebhookAttempt{r.Attempt})
	if err != nil {
		return nil, err
	}
	err = s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(deliverySave, webhook, r.Delivery, r.Attempt.Number, r.State, r.NextAt, r.Error, now, string(attempt),
			publishing.MaxWebhookAttempts)
		switch {
		case r.IsTest:
			b.Queue(webhookExtend, webhook, until, r.SlowUntil)
		case r.State == publishing.DeliveryDelivered:
			b.Queue(webhookWorks, webhook, until, r.SlowUntil)
		default:
			b.Queue(webhookFails, webhook, until, now, r.NotBefore, r.SlowUntil)
			b.Queue(webhookFailing, webhook).Query(func(rows pgx.Rows) error {
				list, err := pgx.CollectRows(rows, pgx.RowTo[*time.Time])
				failing = append(list, nil)[0] // deleted meanwhile: nothing fails
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

// webhookHold is a statement of its own: what waited for the lock sees the deliveries that were added meanwhile.
const webhookHold = `-- publishing.WebhookHold
select from webhook w where w.id = $1 for no key update`

// EndWebhook lets other processes have an endpoint, and stores when it has something to send again, which is not earlier
// than a time.
func (s *Store) EndWebhook(
	ctx context.Context, org tenancy.OrgID, webhook publishing.WebhookID, notBefore time.Time,
) error {
	return s.InOrg(ctx, org, func(tx *Tx) error {
		b := &pgx.Batch{}
		b.Queue(webhookHold, webhook)
		b.Queue(webhookEnd, webhook, notBefore)
		return tx.tx.SendBatch(ctx, b).Close()
	})
}

const webhookDisable = `-- publishing.WebhookDisable
update webhook set disabled_at = $2, disabled_for = $3, updated_at = $2 where id = $1 and disabled_at is null`

// DisableWebhook disables an endpoint and gives up what it has not been sent; the explanation is for people. It returns
// false when it is disabled already or gone.
func (s *Store) DisableWebhook(
	ctx context.Context, org tenancy.OrgID, webhook publishing.WebhookID, reason publishing.WebhookDisabled,
	explanation string, now time.Time,
) (done bool, err error) {
	err = s.InOrg(ctx, org, func(tx *Tx) error {
		var tag pgconn.CommandTag
		tag, err := tx.tx.Exec(ctx, webhookDisable, webhook, now, reason)
		done = tag.RowsAffected() > 0
		if err != nil || !done {
			return err
		}
		return tx.StopDeliveries(ctx, webhook, now, explanation)
	})
	return done, err
}
