package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// StoredPlan is posting times with their time zone, which tenancy.LoadZone may not know.
type StoredPlan struct {
	Timezone string
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

// QueuePlan returns the queue plan of a channel, or pgx.ErrNoRows when there is no such channel.
func QueuePlan(
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

// LockPlan locks the queue plan and the time zone of a channel until the transaction ends, and returns the zone. It
// returns pgx.ErrNoRows when there is no such channel.
func LockPlan(ctx context.Context, tx *db.Tx, channel publishing.ChannelID) (zone string, err error) {
	return zone, tx.QueryRow(ctx, planLock, channel).Scan(&zone)
}

const planSet = `-- publishing.PlanSet
update channel set timezone = $2, queue_plan = $3, updated_at = now() where id = $1 and deleted_at is null`

// SetPlan replaces the queue plan and the time zone of a locked channel. Repeated posts keep the zone that they have.
func SetPlan(ctx context.Context, tx *db.Tx, channel publishing.ChannelID, p StoredPlan) error {
	_, err := tx.Exec(ctx, planSet, channel, p.Timezone, db.StoredTimes(p.Times))
	return err
}

// slotsLock lets the calls that look for a slot of an organization run one after the other.
const slotsLock = `-- publishing.SlotsLock
select from organization where id = $1 for no key update`

// allPlans has one row for each time zone.
const allPlans = `-- publishing.AllPlans
select c.timezone, jsonb_agg(distinct t.at) as queue_plan
from channel c cross join lateral jsonb_array_elements(c.queue_plan) t(at)
where c.deleted_at is null and not c.disabled
group by c.timezone`

const slotsNow = `-- publishing.SlotsNow
select clock_timestamp()`

// LockSlots locks the slots of the organization until the transaction ends: of all calls of it, in all processes, only
// one at a time goes on from here. It returns the queue plan of the channel, and none when there is no such channel. For
// the zero channel it returns those of all channels that are not disabled, one for each time zone. now is the time of
// the database.
func LockSlots(
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

// takenBy has the posts and the holds that take a minute. Both are read by one statement: a create writes its post and
// deletes the hold in one transaction, of which two statements could each see the wrong half. A post in ERROR is not
// going out, and takes nothing.
func takenBy(name, ofPost, ofHold string) string {
	return `-- publishing.` + name + `
select date_trunc('minute', p.publish_date) as at
from post p
where p.publish_date >= $1 and p.publish_date < $2 and ` + ofPost + ` and p.deleted_at is null and p.state <> 'ERROR'
union
select h.at from slot_hold h
where ` + ofHold + ` and h.at >= $1 and h.at < $2 and h.expires_at > clock_timestamp()`
}

// $3 is the channel. That it is null in allTaken too gives both statements the same parameters.
var (
	channelTaken = takenBy("ChannelTaken", `p.channel_id = $3::uuid`, `h.subject in ($3, h.org_id)`)
	allTaken     = takenBy("AllTaken", `$3::uuid is null`, `true`)
)

// TakenMinutes returns the minutes from the one of an instant to another instant at which the channel has a post or the
// next occurrences of a repeated one, or a hold. For the zero channel it returns those of all channels. LockSlots must
// be called before. It returns ErrTooMuch when there are publishing.MaxListed repeated posts or more.
func TakenMinutes(
	ctx context.Context, tx *db.Tx, channel publishing.ChannelID, from, until time.Time,
) (publishing.TakenMinutes, error) {
	from = from.Truncate(time.Minute)
	var series []projectedSeries
	var times []time.Time
	statement := channelTaken
	if channel.IsZero() {
		statement = allTaken
	}
	b := &pgx.Batch{}
	// The series are read first: an occurrence that is stored meanwhile is found twice instead of not at all.
	b.Queue(findSeriesInRange, from, until.UTC(), publishing.CustomerID{}, publishing.MaxListed, channel).
		Query(collectProjected(&series))
	b.Queue(statement, from, until, channel).Query(db.Into(&times, pgx.RowTo[time.Time]))
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	if len(series) >= publishing.MaxListed {
		return nil, ErrTooMuch
	}
	taken := make(publishing.TakenMinutes, len(times))
	for _, at := range times {
		taken.Add(at)
	}
	for _, s := range series {
		for number, at, ok := s.next(0, from); ok && at.Before(until); number, at, ok = s.next(number, from) {
			taken.Add(at)
		}
	}
	return taken, nil
}

const slotHold = `-- publishing.SlotHold
insert into slot_hold (org_id, subject, at, expires_at)
values ($1, $2, $3, clock_timestamp() + $4 * interval '1 millisecond')
on conflict (org_id, subject, at) do update set expires_at = excluded.expires_at`

// holdsExpire skips holds that a create deletes at this moment.
const holdsExpire = `-- publishing.HoldsExpire
delete from slot_hold where (org_id, subject, at) in (
  select h.org_id, h.subject, h.at from slot_hold h
  where h.org_id = $1 and h.expires_at <= clock_timestamp() for update skip locked)`

// HoldSlot holds a slot of a channel, or of all channels for the zero one, for a time, and deletes the holds that are
// over. The transaction must have locked the slots. A hold that is lost with a crash costs nothing.
func HoldSlot(ctx context.Context, tx *db.Tx, channel publishing.ChannelID, at time.Time, life time.Duration) error {
	subject := channel.UUID()
	if channel.IsZero() {
		subject = tx.Org.UUID()
	}
	b := &pgx.Batch{}
	b.Queue(slotHold, tx.Org, subject, at, life.Milliseconds())
	b.Queue(holdsExpire, tx.Org)
	return tx.SendBatch(ctx, b).Close()
}

// holdsRelease locks in the order of the key, so that two creates do not wait for each other.
const holdsRelease = `-- publishing.HoldsRelease
with held as (
  select h.subject, h.at from unnest($2::uuid[], $3::timestamptz[]) u(channel, at)
  join slot_hold h on h.org_id = $1 and h.subject in (u.channel, $1) and h.at = date_trunc('minute', u.at)
  order by h.subject, h.at for update of h
)
delete from slot_hold h using held where h.org_id = $1 and h.subject = held.subject and h.at = held.at`

// queueHoldsRelease queues the deletion of the holds at the times of roots: a post at a held time takes it itself.
func queueHoldsRelease(tx *db.Tx, b *pgx.Batch, posts []NewPost) {
	var channels [][16]byte
	var dates []time.Time
	for _, p := range posts {
		if p.After.IsZero() && !p.PublishDate.IsZero() {
			channels, dates = append(channels, p.Channel.UUID()), append(dates, p.PublishDate)
		}
	}
	if len(channels) > 0 {
		b.Queue(holdsRelease, tx.Org, channels, dates)
	}
}
