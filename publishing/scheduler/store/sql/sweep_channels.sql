-- publishing.SweepChannels
--
-- Finds the same organizations as sweep.sql through the channels of the process: it reads one post of each, however
-- many are due.
--
-- Result: each organization with something due, when its first post may be claimed, the time of the database, and 0.
--
--   $1 shards smallint[]: shards of the process
--   $2 node uuid: the process
--   $3 horizon double precision: milliseconds from now within which a post must be due
--   $4 max_late double precision: milliseconds after which a post is too late to be published
--   $5 most bigint: not used; both statements have the same parameters
--
--   PREPARE sweep_channels (smallint[], uuid, double precision, double precision, bigint) AS
--   EXPLAIN EXECUTE sweep_channels (null, null, null, null, null);
select w.org_id, min(w.at) as at, now() as now, 0::bigint as posts from (
  -- The free channels with a post, each with when that post may be claimed.
  select q.org_id, greatest(h.due, h.not_before, q.not_before) as at
  from channel_queue q
  cross join lateral (
    -- The first due post of the queue, or the post that backs off and keeps the channel busy.
    (select p.due, p.not_before from post p
     where q.busy_post is null and p.channel_id = q.channel_id
       and p.state = 'QUEUE' and p.deleted_at is null
       and p.due < now() + $3 * interval '1 millisecond' and p.due > now() - $4 * interval '1 millisecond'
     order by p.due, p.seq limit 1)
    union all
    select p.due, p.not_before from post p
    where p.id = any (array[q.busy_post]) and (p.state = 'QUEUE') is true and p.deleted_at is null) h
  where q.shard = any (array(
      select s.shard from shard s
      where s.shard = any ($1::smallint[]) and s.owner = $2
        and exists (select from node n where n.id = $2 and n.expires_at > clock_timestamp())))
    and not q.parked and not q.paused and $5::bigint >= 0
  offset 0) w
group by w.org_id
