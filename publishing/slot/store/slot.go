// Package store reads and writes queue plans and slot holds. Only the parent package imports it.
package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// StoredPlan holds posting times and their time zone. The time zone may be unknown to
// tenancy.LoadZone.
type StoredPlan struct {
	Timezone string // Example: Europe/Vienna
	Times    []publishing.QueueTime
}

func scanPlan(row pgx.CollectableRow) (p StoredPlan, err error) {
	var stored []db.StoredTime
	if err := row.Scan(&p.Timezone, &stored); err != nil {
		return p, err
	}
	p.Times = make([]publishing.QueueTime, len(stored))
	for i, t := range stored {
		p.Times[i] = publishing.QueueTime(t)
	}
	return p, nil
}

const channelPlan = `-- publishing.ChannelPlan
select timezone, queue_plan from channel where id = $1 and deleted_at is null`

// Plan returns a channel's queue plan. It returns pgx.ErrNoRows if the channel does not exist.
func Plan(
	ctx context.Context, d *db.DB, org tenancy.OrgID, channel publishing.ChannelID,
) (p StoredPlan, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(channelPlan, channel).Query(func(rows pgx.Rows) (err error) {
			p, err = pgx.CollectExactlyOneRow(rows, scanPlan)
			return err
		})
	})
	return p, err
}

const planLock = `-- publishing.PlanLock
select timezone from channel where id = $1 and deleted_at is null for no key update`

// LockPlan locks a channel's queue plan and time zone until the transaction ends. It returns the
// time zone, or pgx.ErrNoRows if the channel does not exist.
func LockPlan(ctx context.Context, tx *db.Tx, channel publishing.ChannelID) (zone string, err error) {
	return zone, tx.QueryRow(ctx, planLock, channel).Scan(&zone)
}

const planSet = `-- publishing.PlanSet
update channel set timezone = $2, queue_plan = $3, updated_at = now() where id = $1 and deleted_at is null`

// SetPlan replaces a locked channel's queue plan and time zone. Existing series of repeated posts
// keep their time zone.
func SetPlan(ctx context.Context, tx *db.Tx, channel publishing.ChannelID, p StoredPlan) error {
	_, err := tx.Exec(ctx, planSet, channel, p.Timezone, db.StoredTimes(p.Times))
	return err
}

// slotsLock serializes an organization's searches for slots.
const slotsLock = `-- publishing.SlotsLock
select from organization where id = $1 for no key update`

// allPlans returns one row per time zone.
const allPlans = `-- publishing.AllPlans
select c.timezone, jsonb_agg(distinct t.at) as queue_plan
from channel c cross join lateral jsonb_array_elements(c.queue_plan) t(at)
where c.deleted_at is null and not c.disabled
group by c.timezone`

const slotsNow = `-- publishing.SlotsNow
select clock_timestamp()`

// Lock locks the organization's slots until the transaction ends, so that only one caller proceeds
// at a time, across all processes. It returns the channel's queue plan, or none if there is no such
// channel. If channel is zero, it returns the plans of all enabled channels, merged into one plan
// per time zone. now is the database's time.
func Lock(
	ctx context.Context, tx *db.Tx, channel publishing.ChannelID,
) (plans []StoredPlan, now time.Time, err error) {
	b := &pgx.Batch{}
	b.Queue(slotsLock, tx.Org)
	b.Queue(slotsNow).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	if channel.IsZero() {
		b.Queue(allPlans).Query(db.Into(&plans, scanPlan))
	} else {
		b.Queue(channelPlan, channel).Query(db.Into(&plans, scanPlan))
	}
	return plans, now, tx.SendBatch(ctx, b).Close()
}

const slotHold = `-- publishing.SlotHold
insert into slot_hold (org_id, subject, at, expires_at)
values ($1, $2, $3, clock_timestamp() + $4 * interval '1 millisecond')
on conflict (org_id, subject, at) do update set expires_at = excluded.expires_at`

// holdsExpire skips holds that a create command is currently deleting.
const holdsExpire = `-- publishing.HoldsExpire
delete from slot_hold where (org_id, subject, at) in (
  select h.org_id, h.subject, h.at from slot_hold h
  where h.org_id = $1 and h.expires_at <= clock_timestamp() for update skip locked)`

// Hold holds a channel's slot for the duration life, and deletes expired holds. If channel is zero,
// the slot is held for all channels. The caller must have locked the slots in the same transaction.
// Losing a hold in a crash does no harm.
func Hold(ctx context.Context, tx *db.Tx, channel publishing.ChannelID, at time.Time, life time.Duration) error {
	subject := channel.UUID()
	if channel.IsZero() {
		subject = tx.Org.UUID()
	}
	b := &pgx.Batch{}
	b.Queue(slotHold, tx.Org, subject, at, life.Milliseconds())
	b.Queue(holdsExpire, tx.Org)
	return tx.SendBatch(ctx, b).Close()
}
