-- publishing.ClaimUnknown
--
-- Takes unknown outcomes that are due to be reconciled, so that only this process asks their platforms. Each post is
-- checked again.
--
-- Result: organization, post, claim token, when the call was about to be made, whether the lease of the process that
-- sent it has ended, and the time of the database.
--
--   $1 posts uuid[]: the posts
--   $2 claim_time double precision: milliseconds for which no other process takes them
--
--   PREPARE claim_unknown (uuid[], double precision) AS
--   EXPLAIN EXECUTE claim_unknown (null, null);
with unknown_outcome as (
  -- The posts that are still due, locked with the queues of their channels.
  select p.id from unnest($1::uuid[]) u(id)
  join post p on p.id = any (array[u.id])
  join channel_queue q on q.channel_id = any (array[p.channel_id])
  where (p.state = 'UNKNOWN' and p.claim_until <= now()) is true
  order by u.id for no key update of p, q skip locked
)
update post p set looks = p.looks + 1, claim_until = now() + $2 * interval '1 millisecond', updated_at = now()
from unknown_outcome o where p.id = any (array[o.id])
returning p.org_id, p.id, p.claim_token, p.committing_at,
  not exists (select from node n where n.id = p.claim_holder and n.expires_at > now()) as holder_gone,
  now() as now
