-- publishing.Claim
--
-- Claims due posts, at most one of each channel. A process claims nothing in a shard that it does not own.
--
-- The first post of each channel is read without locks. Then the row of the channel's queue and the post are locked,
-- and both are checked again on their newest versions. Rows that another transaction has locked are skipped: of two
-- processes, the second one takes nothing. A post that was edited after the statement began is skipped too, because its
-- parts were read before the edit.
--
-- Limits: of a platform in $12, at most as many posts as $13 allows are claimed, the earliest first. A post gets a
-- permit only while its destination holds fewer permits ($14) than are free ($15). Posts are ranked by how many permits
-- their destination would hold, so that the rank of a post says how many permits those before it take.
--
-- The id of a publication is derived from the post, the part, the round and the due time, and its created_at is the due
-- time, so that the same send has the same identity after a restore that has lost the claim. The parts of a thread are
-- a millisecond apart, because platforms list posts with the same time in any order.
--
-- Result: one row for each claimed post, and one row without a post for each organization that has more: channel_id is
-- the last channel that was visited if there may be more channels, the ninth column is when the next post is due, and
-- the last column lists the platforms and destinations at their limit for which something is due.
--
--   $1 shards smallint[]: shards of the process
--   $2 node uuid: the process
--   $3 orgs uuid[]: organizations
--   $4 permits integer[]: how many posts of each organization may be claimed
--   $5 after uuid[]: for each organization, the channel after which the visit begins
--   $6 window bigint: how many channels of an organization are visited
--   $7 max_late double precision: milliseconds after which a post is too late to be published
--   $8 full text[]: platforms and destinations ("@" and the host) that are at their limit
--   $9 number bigint: number of this statement in its process
--   $10 claim_time double precision: milliseconds that the claims last
--   $11 node_name text: name of the process in timelines
--   $12 platforms text[]: platforms with a limit
--   $13 platform_most integer[]: how many posts of each of these platforms may be claimed
--   $14 busy jsonb: permits that each destination holds
--   $15 free_permits bigint: permits that no post holds
--
--   PREPARE claim (smallint[], uuid, uuid[], integer[], uuid[], bigint, double precision, text[], bigint, double
--     precision, text, text[], integer[], jsonb, bigint) AS
--   EXPLAIN EXECUTE claim (null, null, null, null, null, null, null, null, null, null, null, null, null, null,
--     null);
with channel_head as materialized (
  -- The visited channels of each organization, in the order of their ids, each with its head: the post that keeps the
  -- channel busy, or else the first post of its queue, unless it is too late. "at" is when the head may be claimed. A
  -- channel has no head if it is parked, paused, or in a shard that the process does not own ($1, $2). The queue of a
  -- busy channel is not read.
  select s.org, s.permits, s.channel_id, s.connector, s.place, h.id as post_id, h.revision, h.due,
    greatest(h.due, h.not_before, s.not_before) as at
  from (
    select w.org, w.permits, q.channel_id, q.shard, q.connector, '@' || q.destination as place, q.busy_post,
      q.not_before, q.parked or q.paused as shut
    from unnest($3::uuid[], $4::int[], $5::uuid[]) w(org, permits, after)
    cross join lateral (
      select * from channel_queue c
      where c.org_id = w.org and c.channel_id > w.after
      order by c.channel_id limit $6) q) s
  left join lateral (
    (select p.id, p.due, p.not_before, p.revision from post p
     where s.busy_post is null and p.channel_id = s.channel_id and p.state = 'QUEUE' and p.deleted_at is null
       and p.due > now() - $7 * interval '1 millisecond'
     order by p.due, p.seq limit 1)
    union all
    select p.id, p.due, p.not_before, p.revision from post p
    where p.id = s.busy_post and (p.state = 'QUEUE') is true and p.deleted_at is null
      and p.due > now() - $7 * interval '1 millisecond') h
  on s.shard = any (array(
      select s.shard from shard s
      where s.shard = any ($1::smallint[]) and s.owner = $2
        and exists (select from node n where n.id = $2 and n.expires_at > clock_timestamp())))
    and not s.shut
), due_head as (
  -- The heads that each organization may claim now, the earliest first, without those whose platform or destination is
  -- at its limit.
  select org, channel_id, connector, place, post_id, revision, due from (
    select *, row_number() over (partition by org order by due, channel_id) as turn
    from channel_head
    where post_id is not null and at <= now() and connector <> all($8::text[]) and place <> all($8::text[])) f
  where turn <= permits
), within_platform as (
  -- Of these, those that the limits of the platforms allow. would_hold is how many permits the destination would then
  -- hold.
  select h.*, coalesce(($14::jsonb ->> h.place)::int, 0)
      + row_number() over (partition by h.place order by h.due, h.channel_id) as would_hold
  from (
    select d.*, row_number() over (partition by connector order by due, channel_id) as nth from due_head d) h
  left join unnest($12::text[], $13::int[]) l(connector, most) using (connector)
  where l.most is null or h.nth <= l.most
), permitted as (
  -- Of these, those that get a permit, because their destination holds fewer than are free.
  select channel_id, post_id, revision from (
    select *, row_number() over (order by would_hold, due, channel_id) as rank from within_platform) r
  where would_hold - 1 < $15::bigint - (rank - 1)
), locked_queue as (
  -- The locked rows of the channels' queues that still allow the post.
  select h.post_id, h.revision, q.connector, '@' || q.destination as place
  from permitted h join channel_queue q on q.channel_id = any (array[h.channel_id])
  where (q.busy_post is null or q.busy_post = h.post_id) and not q.parked and not q.paused
    and (q.not_before is null or q.not_before <= now())
  order by h.channel_id for no key update of q skip locked
), locked_post as (
  -- The locked posts that may still be claimed.
  select p.id, q.connector, q.place
  from locked_queue q join post p on p.id = any (array[q.post_id])
  where (p.state = 'QUEUE') is true and (p.revision = q.revision) is true and p.deleted_at is null and p.due <= now()
    and (p.not_before is null or p.not_before <= now())
  order by q.post_id for no key update of p skip locked
), claimed as (
  -- The posts, claimed.
  update post p set state = 'PUBLISHING', phase = 'preparing', attempt = p.attempt + 1,
    claim_token = gen_random_uuid(), claim_holder = $2, claim_round = $9,
    claim_until = now() + $10 * interval '1 millisecond', call_ended = false, looks = 0, committing_at = null,
    not_before = null, updated_at = now()
  from locked_post where p.id = any (array[locked_post.id])
  returning p.org_id, p.id, p.group_id, p.channel_id, p.claim_token, p.attempt, p.due,
    coalesce(p.nominal_due, p.due) as nominal, p.republish, locked_post.connector, locked_post.place
), busy_channel as (
  -- The channels of these posts. Posts that became due while a late post waited for its channel are released with gaps:
  -- see finish.sql.
  update channel_queue q set busy_post = t.id, not_before = null,
    held_until = case
      when t.attempt = 1 and t.due < now() - interval '2 minutes' and (q.done_at is null or q.done_at < t.due)
        then now()
      else q.held_until end
  from claimed t where q.channel_id = any (array[t.channel_id])
), new_publication as (
  -- A publication for each part, unless an earlier claim of the round wrote it.
  insert into publication (org_id, id, post_id, group_id, part_id, position, number, created_at, claimed_at)
  select a.org_id,
    substr(encode(sha256(convert_to(concat_ws(' ', a.post_id, a.id, a.republish,
      (extract(epoch from a.nominal) * 1000)::bigint), 'UTF8')), 'hex'), 1, 32)::uuid,
    a.post_id, a.group_id, a.id, a.position, a.republish,
    date_trunc('milliseconds', a.nominal) + a.position * interval '1 millisecond', now()
  from (
    select t.org_id, t.group_id, t.republish, t.nominal, a.id, a.post_id, a.position
    from claimed t join part a on a.post_id = any (array[t.id]) and (a.org_id = t.org_id) is true) a
  on conflict on constraint publication_once do nothing
), timeline as (
  -- The claims in the timelines of the posts.
  insert into post_event (org_id, post_id, event, node) select org_id, id, 'claimed', $11 from claimed
)
select org_id, id, channel_id, connector, place, claim_token, attempt, due, null::timestamptz as next,
  null::text[] as at_limit
from claimed
union all
select org, null, case when count(*) = $6 then (array_agg(channel_id order by channel_id desc))[1] end,
  null, null, null, null, now(),
  min(at) filter (where remains and (connector <> all ($8) and place <> all ($8) or at > now())),
  array(select distinct c from unnest(array_agg(case when connector = any ($8) then connector else place end)
    filter (where remains and (connector = any ($8) or place = any ($8)) and at <= now())) c)
from (
  select *, post_id is not null and post_id not in (select id from claimed) as remains from channel_head) f
group by org having count(*) = $6 or bool_or(remains)
