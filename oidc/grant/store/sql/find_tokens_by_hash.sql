-- oidc.TokensByHash
--
-- Finds access tokens by their hashes, with their grants and their people's current rights. Voided tokens are left out.
-- A membership always exists, because deleting it deletes the grant.
--
-- A grant's last use is written at most once a minute, so that most reads write nothing. A grant that another
-- transaction has locked is left unchanged, so that the statement never waits for a lock.
--
--   $1 hashes bytea[]: hashes of tokens
--   $2 now timestamptz: the time of the request
--
--   PREPARE find_tokens_by_hash (bytea[], timestamptz) AS
--   EXPLAIN EXECUTE find_tokens_by_hash (null, null);
with found as (
  -- The tokens with their grants, people and organizations.
  select t.hash, t.org_id, t.created_at, t.expires_at, f.scopes, f.resource, g.id grant_id, g.client, g.client_id,
    g.client_name, g.person_id, g.scopes granted, g.write_declined, g.channels, g.customers, g.must_ask,
    g.posts_per_day, g.ends_at, g.used_at, p.email, p.verified, p.name, p.deleted_at is not null person_deleted,
    o.suspended_at is not null suspended, o.deleted_at is not null org_deleted, o.mfa_required
  from oauth_token t
  join oauth_family f on f.org_id = t.org_id and f.id = t.family_id
  join oauth_grant g on g.org_id = f.org_id and g.id = f.grant_id
  join person p on p.id = g.person_id
  join organization o on o.id = t.org_id
  where t.hash = any ($1) and t.kind = 'access' and not t.voided
), due as (
  -- The grants whose last use was written more than a minute ago, locked.
  select g.org_id, g.id from oauth_grant g join found f on f.org_id = g.org_id and f.grant_id = g.id
  where g.used_at is null or g.used_at < $2::timestamptz - interval '1 minute' for update of g skip locked
), used as (
  -- Their last use.
  update oauth_grant g set used_at = $2 from due d where g.org_id = d.org_id and g.id = d.id
)
select f.hash, f.org_id, f.created_at, f.expires_at, f.scopes, f.resource, f.grant_id, f.client, f.client_id,
  f.client_name, f.person_id, f.granted, f.write_declined, f.channels::text[] channels,
  f.customers::text[] customers, f.must_ask, f.posts_per_day, f.ends_at, f.email, f.verified, f.name,
  f.person_deleted, f.suspended, f.org_deleted, m.role, m.disabled,
  f.mfa_required and not exists (
    select from mfa x where x.person_id = f.person_id and x.confirmed_at is not null) unenrolled
from found f
join member m on m.org_id = f.org_id and m.person_id = f.person_id
