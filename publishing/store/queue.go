package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

// Lease is what this process may schedule: the shards it holds, each under the epoch in which it got it.
type Lease struct {
	Holder uuid.UUID // id of the process start
	Shards []int16
	Epochs []int64
}

// Want is how many posts an organization may have claimed now.
type Want struct {
	Org     tenancy.OrgID
	Permits int
}

// Limits is what all channels of a platform share: how many posts of each may be claimed now. A platform that is not in it has no limit.
type Limits map[string]int

// Claimed is a post that this process alone may send now, by its token.
type Claimed struct {
	Org       tenancy.OrgID
	Post      publishing.PostID
	Channel   publishing.ChannelID
	Connector string
	Token     uuid.UUID
	Attempt   int
	Due       time.Time
	Direct    bool          // a text alone, its call marked by the claim
	Began     time.Duration // of the claim, by the clock of outbound's limits
}

// The head of a channel: the post that holds it, or else the first of its queue. A busy channel's queue is not looked through.
const headOf = `cross join lateral (
  (select p.id, p.due, p.not_before, p.revision from post p
   where q.busy_post is null and p.channel_id = q.channel_id and p.state = 'QUEUE' and p.deleted_at is null
   order by p.due, p.seq limit 1)
  union all
  select p.id, p.due, p.not_before, p.revision from post p where p.id = q.busy_post and (p.state = 'QUEUE') is true and p.deleted_at is null) h`

// The gate: the shards under the epochs in which they were got ($2 holds one for each shard, by its number), of a process ($3) that is still a member.
const held = `select s.shard from shard s
  where cardinality($1::smallint[]) > 0 and s.owner = $3 and s.epoch = ($2::bigint[])[s.shard + 1] and exists (select from node n where n.id = $3 and n.expires_at > clock_timestamp())`

// mine are the posts of those shards.
const mine = `p.shard = any (array(` + held + `))`

// The first post of every free channel of the organizations ($4), with the time from which it may be claimed. Each organization may have as many as its permits ($5).
const heads = `
  select w.org, w.permits, q.channel_id, q.connector, h.id as post_id, h.revision, h.due, greatest(h.due, h.not_before, q.not_before) as at
  from unnest($4::uuid[], $5::int[]) w(org, permits) join channel_queue q on q.org_id = any (array[w.org]) ` + headOf + `
  where q.shard = any(array(` + held + `)) and not q.parked and not q.paused`

// Those of them ("free") that an organization may have now, the earliest first, but none of the platforms in $6.
const dueHeads = `
  select org, channel_id, connector, post_id, revision, due from (
    select *, row_number() over (partition by org order by due, channel_id) as turn from free where at <= now() and connector <> all($6::text[])) f
  where turn <= permits`

// The planner goes by what the tables held when a connection first said a statement, and would read the whole of one that was small then, for ever so many rows.
// So nothing but a look-up is left to it: "x = any (array[y])" is the equality that it can use for an index and for nothing else, no order is asked of what is looked up, and
// "(state = ...) is true" keeps it off the small indexes over states. A test goes through all plans.

// The claim reads heads without locks, then locks the channel's queue row and the post, testing both again on their newest versions: whoever comes second skips.
// So it does with a post that was rewritten meanwhile: its parts and media are those that the statement saw when it began.
// The parts of a thread get times a millisecond apart: platforms list what has the same time in any order.
// Where a text needs no preparation, the claim is the mark as well: see Descriptor.Direct.
// Platforms with a limit ($10) give so many heads ($11), the earliest; one with nothing left takes no organization's permits away.
const claim = `-- publishing.Claim
with free as materialized (` + heads + `
), head as (` + dueHeads + `
), allowed as (
  select h.channel_id, h.post_id, h.revision from (select *, row_number() over (partition by connector order by due, channel_id) as nth from head) h
  left join unnest($10::text[], $11::int[]) l(connector, most) using (connector) where l.most is null or h.nth <= l.most
), queue as (
  select h.post_id, h.revision, q.connector, q.direct from allowed h join channel_queue q on q.channel_id = any (array[h.channel_id])
  where (q.busy_post is null or q.busy_post = h.post_id) and not q.parked and not q.paused and (q.not_before is null or q.not_before <= now())
  order by h.channel_id for no key update of q skip locked
), locked as (
  select p.id, q.connector, q.direct and p.attempt = 0 and not exists (
    select from part a where a.post_id = any (array[p.id]) and (a.org_id = p.org_id) is true and exists (select from attachment t where t.part_id = any (array[a.id]) and (t.org_id = a.org_id) is true offset 0) offset 0) as direct
  from queue q join post p on p.id = any (array[q.post_id])
  where (p.state = 'QUEUE') is true and (p.revision = q.revision) is true and p.deleted_at is null and p.due <= now() and (p.not_before is null or p.not_before <= now())
  order by q.post_id for no key update of p skip locked
), taken as (
  update post p set state = 'PUBLISHING', phase = case when locked.direct then 'committing' else 'preparing' end, attempt = p.attempt + 1, claim_token = gen_random_uuid(), claim_holder = $3,
    claim_epoch = $7, claim_until = now() + $8 * interval '1 millisecond', call_ended = false, looks = 0, committing_at = case when locked.direct then now() end, not_before = null, updated_at = now()
  from locked where p.id = any (array[locked.id])
  returning p.org_id, p.id, p.group_id, p.channel_id, p.claim_token, p.attempt, p.due, p.republish, p.revision, locked.connector, locked.direct
), hold as (
  update channel_queue q set busy_post = t.id, not_before = null,
    held_until = case when t.attempt = 1 and t.due < now() - interval '2 minutes' and (q.done_at is null or q.done_at < t.due) then now() else q.held_until end
  from taken t where q.channel_id = any (array[t.channel_id])
), written as (
  insert into publication (org_id, post_id, group_id, part_id, position, number, created_at, revision, claimed_at, claimed_by, phase, marked_at, marked_by)
  select a.org_id, a.post_id, a.group_id, a.id, a.position, a.republish, date_trunc('milliseconds', now()) + a.position * interval '1 millisecond', a.revision,
    now(), case when a.attempt = 1 then $9 end, case when a.marked then 'committing' else 'preparing' end, case when a.marked then now() end, case when a.marked then $9 end
  from (select t.org_id, t.group_id, t.republish, t.revision, t.attempt, a.id, a.post_id, a.position, t.direct and row_number() over (partition by t.id order by a.position) = 1 as marked
    from taken t join part a on a.post_id = any (array[t.id]) and (a.org_id = t.org_id) is true) a
  on conflict on constraint publication_once do nothing
), told as (
  insert into post_event (org_id, post_id, event, node) select org_id, id, 'claimed', $9 from taken where attempt > 1
)
select org_id, id, channel_id, connector, claim_token, attempt, due, direct, null::timestamptz, null::text[] from taken
union all
select org, null, null, null, null, null, now(), null, min(at) filter (where connector <> all($6) or at > now()),
  array(select distinct c from unnest(array_agg(connector) filter (where connector = any($6) and at <= now())) c)
from free where post_id not in (select id from taken) group by org`

// Round is what a claim brought.
type Round struct {
	Claimed []Claimed
	Next    map[tenancy.OrgID]time.Time // when the next free channel of an organization has something due; absent = nothing
	Held    map[tenancy.OrgID][]string  // platforms with nothing left of their limit that have something of it due; they are not in Next
	Now     time.Time                   // of the database
}

// Claim takes due posts, at most one a channel, and tells when each organization has more. A stale lease takes nothing.
func (s *Store) Claim(ctx context.Context, l Lease, wants []Want, limits Limits, hold time.Duration, node string) (r Round, err error) {
	orgs, permits := columns(wants)
	names, most, spent := limits.columns()
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		r = Round{Next: map[tenancy.OrgID]time.Time{}, Held: map[tenancy.OrgID][]string{}}
		b.Queue(claim, l.Shards, l.epochs(), l.Holder, orgs, permits, spent, l.maxEpoch(), hold.Milliseconds(), node, names, most).Query(r.collect)
	})
	return r, err
}

const headCount = `-- publishing.HeadCount
with free as materialized (` + heads + `)
select connector, count(*) from (` + dueHeads + `) h where connector = any($7) group by connector`

// Heads counts what a claim would take of some platforms if they had no limit.
func (s *Store) Heads(ctx context.Context, l Lease, wants []Want, platforms []string) (n map[string]int, err error) {
	orgs, permits := columns(wants)
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		n = map[string]int{}
		b.Queue(headCount, l.Shards, l.epochs(), l.Holder, orgs, permits, []string{}, platforms).Query(func(rows pgx.Rows) error {
			var name string
			var count int
			_, err := pgx.ForEachRow(rows, []any{&name, &count}, func() error { n[name] = count; return nil })
			return err
		})
	})
	return n, err
}

func columns(wants []Want) (orgs [][16]byte, permits []int32) {
	orgs, permits = make([][16]byte, len(wants)), make([]int32, len(wants))
	for i, w := range wants {
		orgs[i], permits[i] = w.Org.UUID(), int32(w.Permits)
	}
	return orgs, permits
}

// collect reads what was claimed, and after that a row without a post for each organization that has more.
func (r *Round) collect(rows pgx.Rows) error {
	defer rows.Close()
	for rows.Next() {
		var c Claimed
		var name *string
		var attempt *int
		var direct *bool
		var at *time.Time
		var held []string
		if err := rows.Scan(&c.Org, &c.Post, &c.Channel, &name, &c.Token, &attempt, &c.Due, &direct, &at, &held); err != nil {
			return err
		}
		if !c.Post.IsZero() {
			c.Connector, c.Attempt, c.Direct = *name, *attempt, *direct
			r.Claimed = append(r.Claimed, c)
			continue
		}
		if r.Now = c.Due; at != nil {
			r.Next[c.Org] = *at
		}
		if len(held) > 0 {
			r.Held[c.Org] = held
		}
	}
	return rows.Err()
}

// columns are the platforms with their limits, and those of them that have nothing left.
func (l Limits) columns() (names []string, most []int32, spent []string) {
	names, most, spent = []string{}, []int32{}, []string{}
	for name, n := range l {
		names, most = append(names, name), append(most, int32(n))
		if n <= 0 {
			spent = append(spent, name)
		}
	}
	return names, most, spent
}

// epochs has one for each shard, by its number; none is negative but that of a shard not held.
func (l Lease) epochs() []int64 {
	out := make([]int64, tenancy.Shards)
	for i := range out {
		out[i] = -1
	}
	for i, shard := range l.Shards {
		out[shard] = l.Epochs[i]
	}
	return out
}

func (l Lease) maxEpoch() (top int64) {
	for _, e := range l.Epochs {
		top = max(top, e)
	}
	return top
}

const sweep = `-- publishing.Sweep
select w.org_id, min(w.at), now() from (
  select q.org_id, greatest(case when q.busy_post is null then d.at else b.at end, q.not_before) as at
  from (select p.channel_id, min(greatest(p.due, p.not_before)) as at from post p
    where ` + mine + ` and p.state = 'QUEUE' and p.deleted_at is null and p.due < now() + $4 * interval '1 millisecond' group by p.channel_id offset 0) d
  join channel_queue q on q.channel_id = any (array[d.channel_id])
  left join lateral (select greatest(p.due, p.not_before) as at from post p where p.id = any (array[q.busy_post]) and (p.state = 'QUEUE') is true and p.deleted_at is null) b on true
  where not q.parked and not q.paused and (q.busy_post is null or b.at is not null) offset 0) w
group by w.org_id`

// Sweep finds every organization of the lease with something due within the horizon on a channel that is free.
func (s *Store) Sweep(ctx context.Context, l Lease, horizon time.Duration) (next map[tenancy.OrgID]time.Time, now time.Time, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		next = map[tenancy.OrgID]time.Time{}
		b.Queue(sweep, l.Shards, l.epochs(), l.Holder, horizon.Milliseconds()).Query(func(rows pgx.Rows) error {
			defer rows.Close()
			for rows.Next() {
				var org tenancy.OrgID
				var at time.Time
				if err := rows.Scan(&org, &at, &now); err != nil {
					return err
				}
				next[org] = at
			}
			return rows.Err()
		})
	})
	return next, now, err
}

// What waits for posts that have ended without going out ("upd") ends with them.
const bereft = `update post f set state = 'ERROR', error = 'The part before this one was not published.', error_code = 'predecessor_failed', updated_at = now()
  from upd where f.group_id = any (array[upd.group_id]) and (f.org_id = upd.org_id and f.state = 'WAITING') is true and f.deleted_at is null`

const expire = `-- publishing.Expire
with late as (
  select p.id from post p where ` + mine + ` and p.state = 'QUEUE' and p.deleted_at is null and p.due < now() - $4 * interval '1 millisecond'
  order by p.due, p.id limit 1000 for no key update of p skip locked
), upd as (
  update post p set state = 'ERROR', error = 'The post could not be published within ' || ($4::bigint / 3600000) || ' hours of its time, so it was not sent.', error_code = 'missed', updated_at = now()
  from late where p.id = any (array[late.id]) returning p.org_id, p.id, p.group_id, p.channel_id
), free as (
  update channel_queue q set busy_post = null from upd where q.channel_id = any (array[upd.channel_id]) and q.busy_post = upd.id
), heirs as (
  ` + bereft + ` returning f.org_id, f.id
), told as (
  insert into post_event (org_id, post_id, event, node, reason) select org_id, id, 'failed', $5, 'missed' from upd union all select org_id, id, 'failed', $5, 'predecessor_failed' from heirs
)
select count(*) from upd`

// Expire gives up posts that are later than maxLate; it returns how many.
func (s *Store) Expire(ctx context.Context, l Lease, maxLate time.Duration, node string) (n int, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(expire, l.Shards, l.epochs(), l.Holder, maxLate.Milliseconds(), node).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	})
	return n, err
}

// What was not yet being committed goes back to the queue and keeps its hold; what was may be out and must be asked for.
const reap = `-- publishing.Reap
with dead as (
  select p.id from post p where ` + mine + ` and p.state = 'PUBLISHING' and (p.claim_until < now() or not exists (select 1 from node n where n.id = p.claim_holder))
  order by p.claim_until, p.id limit 1000 for no key update of p skip locked
), upd as (
  update post p set
    state = case when p.phase = 'committing' then 'UNKNOWN' when p.deleted_at is null then 'QUEUE' else 'ERROR' end,
    error = case when p.phase <> 'committing' and p.deleted_at is not null then 'The post was deleted while it was being published.' end,
    error_code = case when p.phase <> 'committing' and p.deleted_at is not null then 'deleted' end,
    claim_until = case when p.phase = 'committing' then now() end,
    claim_token = case when p.phase = 'committing' then p.claim_token end, claim_holder = case when p.phase = 'committing' then p.claim_holder end,
    phase = case when p.phase = 'committing' then p.phase end, updated_at = now()
  from dead where p.id = any (array[dead.id]) returning p.org_id, p.id, p.state, p.channel_id
), free as (
  update channel_queue q set busy_post = null from upd where q.channel_id = any (array[upd.channel_id]) and q.busy_post = upd.id and upd.state = 'ERROR'
), told as (
  insert into post_event (org_id, post_id, event, node, reason) select org_id, id, case when state = 'UNKNOWN' then 'unknown' else 'returned' end, $4, 'its worker is gone' from upd
)
select count(*) from upd`

// Reap ends the claims whose time is over or whose process is gone; it returns how many.
func (s *Store) Reap(ctx context.Context, l Lease, node string) (n int, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(reap, l.Shards, l.epochs(), l.Holder, node).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	})
	return n, err
}
