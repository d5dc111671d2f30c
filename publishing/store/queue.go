package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

// ClaimRules is what every claim of a process has in common.
type ClaimRules struct {
	Hold    time.Duration // how long the claim lasts unless it is renewed
	MaxLate time.Duration // a post that is later than this is not claimed
	Window  int           // how many channels of one organization one claim looks at
	Node    string        // name of the process in timelines
}

// held selects those of the shards ($1) that the process ($2) owns while its lease lasts.
const held = `select s.shard from shard s
  where s.shard = any ($1::smallint[]) and s.owner = $2 and exists (select from node n where n.id = $2 and n.expires_at > clock_timestamp())`

// mine is true of the posts of those shards.
const mine = `p.shard = any (array(` + held + `))`

//go:embed sql/claim.sql
var claim string

// Claim takes due posts, at most one a channel, and returns when each organization has more. A stale lease takes
// nothing. number identifies this statement among those of the process: see GiveBack.
func (s *Store) Claim(ctx context.Context, l publishing.Lease, wants []publishing.Want, limits publishing.ClaimLimits, number int64, rules ClaimRules) (r publishing.ClaimResult, err error) {
	orgs, permits, after := columns(wants)
	names, most, spent := platformLimits(limits)
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		r = publishing.NewClaimResult()
		b.Queue(claim, l.Shards, l.Holder, orgs, permits, after, rules.Window, rules.MaxLate.Milliseconds(), append(spent, fullDestinations(limits)...),
			number, rules.Hold.Milliseconds(), rules.Node, names, most, limits.Busy, int64(limits.Free)).Query(func(rows pgx.Rows) error { return readClaims(rows, &r) })
	})
	return r, err
}

func columns(wants []publishing.Want) (orgs [][16]byte, permits []int32, after [][16]byte) {
	orgs, permits, after = make([][16]byte, len(wants)), make([]int32, len(wants)), make([][16]byte, len(wants))
	for i, w := range wants {
		orgs[i], permits[i], after[i] = w.Org.UUID(), int32(w.Permits), w.After.UUID()
	}
	return orgs, permits, after
}

// readClaims adds to r the claimed posts and, from the rows without a post, what each organization has left.
func readClaims(rows pgx.Rows, r *publishing.ClaimResult) error {
	defer rows.Close()
	for rows.Next() {
		var c publishing.Claimed
		var name, place *string
		var attempt *int
		var at *time.Time
		var held []string
		if err := rows.Scan(&c.Org, &c.Post, &c.Channel, &name, &place, &c.Token, &attempt, &c.Due, &at, &held); err != nil {
			return err
		}
		if !c.Post.IsZero() {
			c.Connector, c.Place, c.Attempt = *name, *place, *attempt
			r.Claimed = append(r.Claimed, c)
			continue
		}
		if r.Now = c.Due; at != nil {
			r.Next[c.Org] = *at
		}
		if !c.Channel.IsZero() {
			r.More[c.Org] = c.Channel
		}
		if len(held) > 0 {
			r.Held[c.Org] = held
		}
	}
	return rows.Err()
}

// platformLimits returns the platforms with their limits, and those that are at their limit.
func platformLimits(l publishing.ClaimLimits) (names []string, most []int32, spent []string) {
	names, most, spent = []string{}, []int32{}, []string{}
	for name, n := range l.Platforms {
		names, most = append(names, name), append(most, int32(n))
		if n <= 0 {
			spent = append(spent, name)
		}
	}
	return names, most, spent
}

// fullDestinations returns the destinations that get no more permits.
func fullDestinations(l publishing.ClaimLimits) (out []string) {
	for name, n := range l.Busy {
		if n >= l.Free {
			out = append(out, name)
		}
	}
	return out
}

// What is due within the horizon ($3 milliseconds), and not too late ($4) to be published.
const inTime = `p.state = 'QUEUE' and p.deleted_at is null and p.due < now() + $3 * interval '1 millisecond' and p.due > now() - $4 * interval '1 millisecond'`

// Sweep reads what is due, at most $5 posts, and returns with each organization how many it has read. One of which
// nothing may be claimed now has a row without a time.
const sweep = `-- publishing.Sweep
select w.org_id, min(w.at), now(), sum(w.posts)::bigint from (
  select q.org_id, d.posts, case when not q.parked and not q.paused and (q.busy_post is null or b.at is not null)
    then greatest(case when q.busy_post is null then d.at else b.at end, q.not_before) end as at
  from (select x.channel_id, min(greatest(x.due, x.not_before)) as at, count(*) as posts from (
      select p.channel_id, p.due, p.not_before from post p where ` + mine + ` and ` + inTime + ` limit $5) x
    group by x.channel_id offset 0) d
  join channel_queue q on q.channel_id = any (array[d.channel_id])
  left join lateral (select greatest(p.due, p.not_before) as at from post p where p.id = any (array[q.busy_post]) and (p.state = 'QUEUE') is true and p.deleted_at is null) b on true
  offset 0) w
group by w.org_id`

// SweepChannels finds the same by the channels: it reads one post of each, however many are due. It has no use for $5.
const sweepChannels = `-- publishing.SweepChannels
select w.org_id, min(w.at), now(), 0::bigint from (
  select q.org_id, greatest(h.due, h.not_before, q.not_before) as at
  from channel_queue q cross join lateral (
    (select p.due, p.not_before from post p
     where q.busy_post is null and p.channel_id = q.channel_id and ` + inTime + ` order by p.due, p.seq limit 1)
    union all
    select p.due, p.not_before from post p where p.id = any (array[q.busy_post]) and (p.state = 'QUEUE') is true and p.deleted_at is null) h
  where q.shard = any (array(` + held + `)) and not q.parked and not q.paused and $5::bigint >= 0 offset 0) w
group by w.org_id`

// sweepPosts is how many due posts a sweep reads before it goes by channels instead: one organization may schedule any
// number for one moment. On 100,000 channels, 500,000 due posts take 0.6 seconds, 2,000,000 took 2 to 3, and to go by
// channels takes 0.3, also when nothing is due.
const sweepPosts = 500_000

// Sweep finds every organization of the lease with something due within the horizon, and not too late, on a channel
// that is free.
func (s *Store) Sweep(ctx context.Context, l publishing.Lease, horizon, maxLate time.Duration) (next map[tenancy.OrgID]time.Time, now time.Time, err error) {
	return s.sweep(ctx, l, horizon, maxLate, sweepPosts)
}

// sweep goes by channels when as many posts as most are due.
func (s *Store) sweep(
	ctx context.Context, l publishing.Lease, horizon, maxLate time.Duration, most int64,
) (next map[tenancy.OrgID]time.Time, now time.Time, err error) {
	next, now, read, err := s.sweepBy(ctx, sweep, l, horizon, maxLate, most)
	if err != nil || read < most {
		return next, now, err
	}
	next, now, _, err = s.sweepBy(ctx, sweepChannels, l, horizon, maxLate, most)
	return next, now, err
}

// sweepBy carries out one of the statements; read is how many due posts it has read.
func (s *Store) sweepBy(
	ctx context.Context, sql string, l publishing.Lease, horizon, maxLate time.Duration, most int64,
) (next map[tenancy.OrgID]time.Time, now time.Time, read int64, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		next, read = map[tenancy.OrgID]time.Time{}, 0
		var org tenancy.OrgID
		var at *time.Time
		var posts int64
		b.Queue(sql, l.Shards, l.Holder, horizon.Milliseconds(), maxLate.Milliseconds(), most).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&org, &at, &now, &posts}, func() error {
				if read += posts; at != nil {
					next[org] = *at
				}
				return nil
			})
			return err
		})
	})
	return next, now, read, err
}
