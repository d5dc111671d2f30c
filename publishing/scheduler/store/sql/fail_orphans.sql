-- publishing.FailOrphans
--
-- Gives up followers whose predecessor has ended. The statement that ends a predecessor releases its follower; one that
-- was left behind anyway is given up, because its time may be long past. Each post is checked again.
--
-- Result: how many posts were given up.
--
--   $1 posts uuid[]: the followers
--   $2 most double precision: milliseconds that a follower may wait unchanged
--   $3 node_name text: name of the process in timelines
--
--   PREPARE fail_orphans (uuid[], double precision, text) AS
--   EXPLAIN EXECUTE fail_orphans (null, null, null);
with orphan as (
  -- The followers that still wait, locked with the queues of their channels.
  select p.id from unnest($1::uuid[]) u(id)
  join post p on p.id = any (array[u.id])
  join channel_queue q on q.channel_id = any (array[p.channel_id])
  where (p.state = 'WAITING' and p.deleted_at is null and p.updated_at < now() - $2 * interval '1 millisecond') is true
  order by u.id for no key update of p, q skip locked
), failed as (
  -- The followers, given up.
  update post p set state = 'ERROR', error = 'The part before this one ended without starting this one.',
    error_code = 'predecessor_failed', updated_at = now()
  from orphan o where p.id = any (array[o.id])
  returning p.org_id, p.id
), timeline as (
  -- What happened, in the timelines of the posts.
  insert into post_event (org_id, post_id, event, node, reason)
  select org_id, id, 'failed', $3, 'predecessor_failed' from failed
)
select count(*) from failed
