-- tenancy.SessionsByHash
--
-- Finds live sessions by the hashes of their tokens, with the organizations in which their person is an enabled member,
-- the oldest membership first. A person without a membership has one row without an organization. Organizations and
-- accounts marked for deletion are left out.
--
-- The last use of a session is written at most once a minute, so that most reads write nothing. A session that another
-- transaction has locked is left unchanged: the statement never waits for a lock.
--
--   $1 hashes bytea[]: hashes of tokens
--   $2 now timestamptz: the time of the request
--   $3 idle timestamptz: sessions that were last used before this have ended
--
--   PREPARE find_sessions_by_hash (bytea[], timestamptz, timestamptz) AS
--   EXPLAIN EXECUTE find_sessions_by_hash (null, null, null);
with live as (
  -- The sessions that have not ended, with their people.
  select s.hash, s.id, p.id person_id, p.email, p.instance_admin,
    exists (select from mfa f where f.person_id = p.id and f.confirmed_at is not null) has_mfa
  from session s join person p on p.id = s.person_id and p.deleted_at is null
  where s.hash = any ($1) and s.expires_at > $2 and s.seen_at > $3
), due as (
  -- The sessions whose last use was written more than a minute ago, locked.
  select id from session
  where id in (select id from live) and seen_at < $2 - interval '1 minute'
  for update skip locked
), touched as (
  -- Their last use.
  update session s set seen_at = $2 from due where s.id = due.id
)
select l.hash, l.id, l.person_id, l.email, l.instance_admin, l.has_mfa, o.id org_id, coalesce(m.role, '') role,
  coalesce(o.suspended_at is not null, false) suspended, coalesce(o.mfa_required, false) mfa_required
from live l
left join (member m join organization o on o.id = m.org_id and o.deleted_at is null)
  on m.person_id = l.person_id and not m.disabled
order by m.created_at, m.org_id
