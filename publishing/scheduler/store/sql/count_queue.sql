-- publishing.CountQueue
--
-- Counts the due posts of all organizations. Those that could be claimed now are found by the same conditions as in
-- claim.sql: a post that is due behind a busy channel waits for its turn and does not count as late.
--
-- Result: how many could be claimed now, how many of these are overdue, how long the oldest of these has been due, how
-- many wait for their channel or a back-off, and how many are kept back by a pause or a refused credential.
--
--   $1 connector text: count only the posts of this connector; '' = all
--   $2 overdue_after double precision: milliseconds after which a post is overdue
--
--   PREPARE count_queue (text, double precision) AS
--   EXPLAIN EXECUTE count_queue (null, null);
select count(*) filter (where claimable),
  count(*) filter (where claimable and at < now() - $2 * interval '1 millisecond'),
  coalesce(now() - min(at) filter (where claimable), interval '0'),
  count(*) filter (where not claimable and not kept_back),
  count(*) filter (where kept_back)
from (
  -- The queued posts that are due. "at" is when a post may be claimed.
  select greatest(p.due, p.not_before, q.not_before) as at,
    q.parked or q.paused as kept_back,
    not q.parked and not q.paused and (q.busy_post is null or q.busy_post = p.id)
      and greatest(p.due, p.not_before, q.not_before) <= now() as claimable
  from generate_series(0, 255) s(shard)
  join post p on p.shard = s.shard and p.state = 'QUEUE' and p.deleted_at is null and p.due <= now()
  join channel_queue q on q.channel_id = p.channel_id
  join channel c on c.org_id = p.org_id and c.id = p.channel_id
  where $1 = '' or c.connector = $1) d
