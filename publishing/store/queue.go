package store

import (
	"context"
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

// The head of a channel: the post that holds it, else the first of its queue that is not too late ($7 milliseconds)
// to be published. A busy channel's queue is not looked through.
const headOf = `left join lateral (
  (select p.id, p.due, p.not_before, p.revision from post p
   where s.busy_post is null and p.channel_id = s.channel_id and p.state = 'QUEUE' and p.deleted_at is null and p.due > now() - $7 * interval '1 millisecond'
   order by p.due, p.seq limit 1)
  union all
  select p.id, p.due, p.not_before, p.revision from post p
  where p.id = s.busy_post and (p.state = 'QUEUE') is true and p.deleted_at is null and p.due > now() - $7 * interval '1 millisecond') h on s.shard = any (array(` + held + `)) and not s.shut`

// The gate: those of the shards ($1) that the process ($2) owns while its lease lasts.
const held = `select s.shard from shard s
  where s.shard = any ($1::smallint[]) and s.owner = $2 and exists (select from node n where n.id = $2 and n.expires_at > clock_timestamp())`

// mine are the posts of those shards.
const mine = `p.shard = any (array(` + held + `))`

// The channels that this claim looks at: of each organization ($3) at most $6, in the order of their ids, those after
// $5.
const span = `
  select w.org, w.permits, q.channel_id, q.shard, q.connector, '@' || q.destination as place, q.busy_post, q.not_before, q.parked or q.paused as shut
  from unnest($3::uuid[], $4::int[], $5::uuid[]) w(org, permits, after) cross join lateral (
    select * from channel_queue c where c.org_id = w.org and c.channel_id > w.after order by c.channel_id limit $6) q`

// The channels of the span, each with its first post and the time from which that may be claimed, if it is free. Each
// organization may have as many as its permits ($4).
const heads = `
  select s.org, s.permits, s.channel_id, s.connector, s.place, h.id as post_id, h.revision, h.due, greatest(h.due, h.not_before, s.not_before) as at
  from (` + span + `) s ` + headOf

// Those of them ("free") that an organization may have now, the earliest first, but none of a platform or destination
// that has nothing left ($8).
const dueHeads = `
  select org, channel_id, connector, place, post_id, revision, due from (
    select *, row_number() over (partition by org order by due, channel_id) as turn
    from free where post_id is not null and at <= now() and connector <> all($8::text[]) and place <> all($8::text[])) f
  where turn <= permits`

// Statements are planned once for a connection, perhaps while tables are empty. "x = any (array[y])" is the equality
// that the planner can use for an index look-up and for nothing else, and "(state = ...) is true" keeps it off the
// small partial indexes. A test goes through all plans.

// The claim reads heads without locks, then locks the channel's queue row and the post, and tests both again on their
// newest versions: whichever process comes second skips them. A post that was edited since the statement began is
// skipped too, because its parts were read before the edit.
//
// Limits: of a platform in $12 at most $13 heads, the earliest. Of a destination ($14 has the permits that each holds) only
// as many that each of them gets its permit while the destination holds fewer than are free ($15): ranked by what
// their destination would hold, each row knows how many permits those before it take.
//
// A publication's id is derived from post, part, round and due time, and its created_at is the due time: the same
// send has the same identity after a restore that lost the claim. Parts of a thread are a millisecond apart, because
// platforms list posts of the same time in any order.
const claim = `-- publishing.Claim
with free as materialized (` + heads + `
), head as (` + dueHeads + `
), limited as (
  select h.*, coalesce(($14::jsonb ->> h.place)::int, 0) + row_number() over (partition by h.place order by h.due, h.channel_id) as would_hold from (
    select d.*, row_number() over (partition by connector order by due, channel_id) as nth from head d) h
  left join unnest($12::text[], $13::int[]) l(connector, most) using (connector)
  where l.most is null or h.nth <= l.most
), allowed as (
  select channel_id, post_id, revision from (select *, row_number() over (order by would_hold, due, channel_id) as rank from limited) r
  where would_hold - 1 < $15::bigint - (rank - 1)
), queue as (
  select h.post_id, h.revision, q.connector, '@' || q.destination as place from allowed h join channel_queue q on q.channel_id = any (array[h.channel_id])
  where (q.busy_post is null or q.busy_post = h.post_id) and not q.parked and not q.paused and (q.not_before is null or q.not_before <= now())
  order by h.channel_id for no key update of q skip locked
), locked as (
  select p.id, q.connector, q.place from queue q join post p on p.id = any (array[q.post_id])
  where (p.state = 'QUEUE') is true and (p.revision = q.revision) is true and p.deleted_at is null and p.due <= now() and (p.not_before is null or p.not_before <= now())
  order by q.post_id for no key update of p skip locked
), taken as (
  update post p set state = 'PUBLISHING', phase = 'preparing', attempt = p.attempt + 1, claim_token = gen_random_uuid(), claim_holder = $2,
    claim_round = $9, claim_until = now() + $10 * interval '1 millisecond', call_ended = false, looks = 0, committing_at = null, not_before = null, updated_at = now()
  from locked where p.id = any (array[locked.id])
  returning p.org_id, p.id, p.group_id, p.channel_id, p.claim_token, p.attempt, p.due, coalesce(p.nominal_due, p.due) as nominal, p.republish, locked.connector, locked.place
), hold as (
  update channel_queue q set busy_post = t.id, not_before = null,
    held_until = case when t.attempt = 1 and t.due < now() - interval '2 minutes' and (q.done_at is null or q.done_at < t.due) then now() else q.held_until end
  from taken t where q.channel_id = any (array[t.channel_id])
), written as (
  insert into publication (org_id, id, post_id, group_id, part_id, position, number, created_at, claimed_at)
  select a.org_id, substr(encode(sha256(convert_to(concat_ws(' ', a.post_id, a.id, a.republish, (extract(epoch from a.nominal) * 1000)::bigint), 'UTF8')), 'hex'), 1, 32)::uuid,
    a.post_id, a.group_id, a.id, a.position, a.republish, date_trunc('milliseconds', a.nominal) + a.position * interval '1 millisecond',
    now()
  from (select t.org_id, t.group_id, t.republish, t.nominal, a.id, a.post_id, a.position from taken t join part a on a.post_id = any (array[t.id]) and (a.org_id = t.org_id) is true) a
  on conflict on constraint publication_once do nothing
), told as (
  insert into post_event (org_id, post_id, event, node) select org_id, id, 'claimed', $11 from taken
)
select org_id, id, channel_id, connector, place, claim_token, attempt, due, null::timestamptz, null::text[] from taken
union all
select org, null, case when count(*) = $6 then (array_agg(channel_id order by channel_id desc))[1] end, null, null, null, null, now(),
  min(at) filter (where remains and (connector <> all ($8) and place <> all ($8) or at > now())),
  array(select distinct c from unnest(array_agg(case when connector = any ($8) then connector else place end)
    filter (where remains and (connector = any ($8) or place = any ($8)) and at <= now())) c)
from (select *, post_id is not null and post_id not in (select id from taken) as remains from free) f
group by org having count(*) = $6 or bool_or(remains)`

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
