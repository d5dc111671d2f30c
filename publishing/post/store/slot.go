package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
)

// takenBy returns a statement that reads the minutes taken by posts and holds. A create command
// writes its post and deletes the hold in one transaction, so two separate statements could miss
// both. A post in ERROR takes no minute, because it will not be published.
func takenBy(name, ofPost, ofHold string) string {
	return `-- publishing.` + name + `
select date_trunc('minute', p.publish_date) as at
from post p
where p.publish_date >= $1 and p.publish_date < $2 and ` + ofPost + ` and p.deleted_at is null and p.state <> 'ERROR'
union
select h.at from slot_hold h
where ` + ofHold + ` and h.at >= $1 and h.at < $2 and h.expires_at > clock_timestamp()`
}

// $3 is the channel. allTaken checks that $3 is null, so that both statements have the same
// parameters.
var (
	channelTaken = takenBy("ChannelTaken", `p.channel_id = $3::uuid`, `h.subject in ($3, h.org_id)`)
	allTaken     = takenBy("AllTaken", `$3::uuid is null`, `true`)
)

// TakenMinutes returns the minutes in which a channel has a post, a projected occurrence or a hold.
// The range starts with from's minute and ends before until. If channel is zero, the range is
// searched for all channels. The caller must have locked the organization's slots. TakenMinutes
// returns ErrTooMuch if there are publishing.MaxListed or more repeated posts.
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
	// Series are read first, so that an occurrence stored between the two reads is found twice
	// instead of being missed.
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

// holdsRelease locks rows in key order, to prevent deadlocks between two create commands.
const holdsRelease = `-- publishing.HoldsRelease
with held as (
  select h.subject, h.at from unnest($2::uuid[], $3::timestamptz[]) u(channel, at)
  join slot_hold h on h.org_id = $1 and h.subject in (u.channel, $1) and h.at = date_trunc('minute', u.at)
  order by h.subject, h.at for update of h
)
delete from slot_hold h using held where h.org_id = $1 and h.subject = held.subject and h.at = held.at`

// queueHoldsRelease queues a statement that deletes the holds at the roots' times, because these
// times are now taken by the posts.
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
