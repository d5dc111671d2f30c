-- tenancy.SessionsByHash
--
-- Finds live sessions by the hashes of their tokens, with the organizations of which their people are enabled members,
-- the oldest membership first. A person who is a member nowhere has no row.
--
-- The last use of a session is written at most once a minute, so that reads stay reads. A session that another
-- transaction has locked is left as it is: the statement waits for nobody.
--
--   $1 hashes bytea[]: hashes of tokens
--   $2 now timestamptz: the time of the request
--   $3 idle timestamptz: sessions that were last used before this have ended
--
--   PREPARE find_sessions_by_hash (bytea[], timestamptz, timestamptz) AS
--   EXPLAIN EXECUTE find_sessions_by_hash (null, null, null);
with live as (
  -- The sessions that have not ended, with their memberships.
  select s.hash, s.id, m.org_id, m.person_id, m.role, m.created_at
  from session s join member m on m.person_id = s.person_id and not m.disabled
  where s.hash = any ($1) and s.expires_at > $2 and s.seen_at > $3
), due as (
  -- Those whose last use was written more than a minute ago, locked.
  select id from session
  where id in (select id from live) and seen_at < $2 - interval '1 minute'
  for update skip locked
), touched as (
  -- Their last use.
  update session s set seen_at = $2 from due where s.id = due.id
)
select hash, id, org_id, person_id, role from live order by created_at, org_id
