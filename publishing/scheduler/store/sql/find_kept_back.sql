-- publishing.FindKeptBack
--
-- Finds posts that a pause has kept back for too long, so that they are given up when it ends: see expire_paused.sql,
-- which checks the same conditions.
--
-- Result: the ids of at most $6 posts, in no particular order.
--
--   $1 scope text: publishing.PauseScope
--   $2 subject uuid: the organization, the customer or the channel; for a stop, the organization
--   $3 most double precision: milliseconds that a pause may keep a post back
--   $4 all_since boolean: find what fell due since the pause began even if another pause continues
--   $5 except uuid[]: posts that are left out
--   $6 most_found bigint: the maximum number of posts
--
--   PREPARE find_kept_back (text, uuid, double precision, boolean, uuid[], bigint) AS
--   EXPLAIN EXECUTE find_kept_back (null, null, null, null, null, null);
with reached as materialized (
  -- The paused channels that the pause reaches, and whether another pause continues to reach each of them.
  select c.id, exists (
      select from pause u
      where u.subject in (c.org_id, c.customer_id, c.id) and (u.subject, u.scope) <> ($2, $1)) as still_paused
  from channel c join channel_queue q on q.channel_id = c.id
  where c.deleted_at is null and q.paused
    and ($1 in ('organization', 'instance') or $1 = 'customer' and c.customer_id = $2
      or $1 = 'channel' and c.id = $2)
)
select p.id from reached r join post p on p.channel_id = r.id
where p.state = 'QUEUE' and p.deleted_at is null and p.due <= now()
  and ($4 and p.due >= (select u.at from pause u where u.subject = $2 and u.scope = $1)
    or not r.still_paused and p.due <= now() - $3 * interval '1 millisecond')
  and p.id <> all ($5)
limit $6
