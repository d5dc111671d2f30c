-- publishing.Sweep
--
-- Finds the organizations, in the shards that the process owns, that have a post on a free channel that is due within
-- the horizon and not too late. It reads at most $5 due posts: if it reads that many, sweep_channels.sql finds the same
-- organizations without reading more.
--
-- Result: each organization of which a due post was read, when its first post may be claimed (null if none may), the
-- time of the database, and how many of its posts were read.
--
--   $1 shards smallint[]: shards of the process
--   $2 node uuid: the process
--   $3 horizon double precision: milliseconds from now within which a post must be due
--   $4 max_late double precision: milliseconds after which a post is too late to be published
--   $5 most bigint: the maximum number of posts to read
--
--   PREPARE sweep (smallint[], uuid, double precision, double precision, bigint) AS
--   EXPLAIN EXECUTE sweep (null, null, null, null, null);
select w.org_id, min(w.at) as at, now() as now, sum(w.posts)::bigint as posts from (
  -- The channels of the posts, each with when its first post may be claimed, or null if none may.
  select q.org_id, d.posts,
    case when not q.parked and not q.paused and (q.busy_post is null or b.at is not null)
      then greatest(case when q.busy_post is null then d.at else b.at end, q.not_before) end as at
  from (
    select x.channel_id, min(greatest(x.due, x.not_before)) as at, count(*) as posts from (
      -- The due posts.
      select p.channel_id, p.due, p.not_before from post p
      where p.shard = any (array(
          select s.shard from shard s
          where s.shard = any ($1::smallint[]) and s.owner = $2
            and exists (select from node n where n.id = $2 and n.expires_at > clock_timestamp())))
        and p.state = 'QUEUE' and p.deleted_at is null
        and p.due < now() + $3 * interval '1 millisecond' and p.due > now() - $4 * interval '1 millisecond'
      limit $5) x
    group by x.channel_id offset 0) d
  join channel_queue q on q.channel_id = any (array[d.channel_id])
  -- A post that backs off keeps its channel busy: no other post of the channel may be claimed.
  left join lateral (
    select greatest(p.due, p.not_before) as at from post p
    where p.id = any (array[q.busy_post]) and (p.state = 'QUEUE') is true and p.deleted_at is null) b on true
  offset 0) w
group by w.org_id
