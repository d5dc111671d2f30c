-- publishing.PruneEvents
--
-- Deletes old events of posts that ended long ago. The timeline of a post that may have been sent, or that has not
-- ended, is kept whole. Rows that another transaction has locked are skipped.
--
--   $1 posts uuid[]: the post of each event
--   $2 events text[]: the events
--   $3 age double precision: milliseconds for which an event is kept
--
--   PREPARE prune_events (uuid[], text[], double precision) AS
--   EXPLAIN EXECUTE prune_events (null, null, null);
with old as (
  -- The events to delete, locked.
  select e.post_id, e.id from unnest($1::uuid[], $2::text[]) u(post, id)
  join post_event e on e.post_id = any (array[u.post]) and e.id = u.id::bigint
  join post p on p.id = any (array[e.post_id]) and (p.org_id = e.org_id) is true
  where (e.at < now() - $3 * interval '1 millisecond') is true
    and p.updated_at < now() - $3 * interval '1 millisecond' and not p.maybe_sent
    and (p.state in ('PUBLISHED', 'ERROR')
      or p.deleted_at is not null and p.state not in ('PUBLISHING', 'UNKNOWN')) is true
  order by u.post, u.id for update of e skip locked
)
delete from post_event e using old where e.post_id = any (array[old.post_id]) and e.id = old.id
