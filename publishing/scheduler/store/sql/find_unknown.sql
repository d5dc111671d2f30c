-- publishing.FindUnknown
--
-- Lists unknown outcomes, in the shards that the process owns, whose platform is due to be asked.
--
-- Organizations take turns, and so do the destinations of each, so that an organization with many unknown outcomes does
-- not keep those of others from being found, however many host names it has. For a destination that is not asked now
-- ($5), only those are found that were sent longer ago than an outcome may stay unknown ($6): they end without asking.
--
-- Result: post, organization, destination ("@" and the host), and whether it was sent longer ago than $6.
--
--   $1 shards smallint[]: shards of the process
--   $2 node uuid: the process
--   $3 except uuid[]: posts that are left out
--   $4 most bigint: the maximum number of outcomes
--   $5 resting text[]: destinations that are not asked now
--   $6 unknown_for double precision: milliseconds for which an outcome may stay unknown
--
--   PREPARE find_unknown (smallint[], uuid, uuid[], bigint, text[], double precision) AS
--   EXPLAIN EXECUTE find_unknown (null, null, null, null, null, null);
select id, org_id, place as destination, stale from (
  -- turn: the position of the outcome within its organization
  select *, row_number() over (partition by org_id order by nth, claim_until) as turn from (
    -- nth: its position within its destination
    select p.id, p.org_id, '@' || q.destination as place,
      p.committing_at < now() - $6 * interval '1 millisecond' as stale,
      row_number() over (partition by q.destination order by p.claim_until) as nth, p.claim_until
    from post p
    cross join lateral (
      select c.destination from channel_queue c where c.channel_id = any (array[p.channel_id]) offset 0) q
    where p.shard = any (array(
        select s.shard from shard s
        where s.shard = any ($1::smallint[]) and s.owner = $2
          and exists (select from node n where n.id = $2 and n.expires_at > clock_timestamp())))
      and p.state = 'UNKNOWN' and p.claim_until <= now() and p.id <> all ($3::uuid[])) d
  where stale or place <> all ($5::text[])) u
order by greatest(nth, turn), claim_until limit $4
