-- publishing.PruneKeys
--
-- Deletes old idempotency keys. A key is kept while a repeat of its request must find the post: until every post of the
-- request has ended and has not changed for as long as a key is kept. A repeated post ends with its series. Rows that
-- another transaction has locked are skipped.
--
--   $1 orgs uuid[]: the organization of each key
--   $2 keys text[]: the keys
--   $3 age double precision: milliseconds for which a key is kept
--
--   PREPARE prune_keys (uuid[], text[], double precision) AS
--   EXPLAIN EXECUTE prune_keys (null, null, null);
with old as (
  -- The keys that are no longer needed, locked.
  select i.org_id, i.key
  from unnest($1::uuid[], $2::text[]) u(org, key)
  join idempotency i on i.org_id = any (array[u.org]) and i.key = u.key
  where (i.created_at < now() - $3 * interval '1 millisecond') is true
    and not exists (
      select
      from unnest(array(select (b ->> 'post')::uuid from jsonb_array_elements(i.body) b)) a(post)
      join post p on p.id = any (array[a.post]) and (p.org_id = i.org_id) is true
      join post g on g.group_id = any (array[p.group_id]) and (g.org_id = p.org_id) is true
      where g.updated_at >= now() - $3 * interval '1 millisecond'
        or g.state in ('PUBLISHING', 'UNKNOWN')
        or g.deleted_at is null
          and (g.state not in ('PUBLISHED', 'ERROR')
            or exists (
              select from series s
              where s.org_id = any (array[g.org_id]) and s.id = g.series_id and s.stopped_at is null)))
  order by u.org, u.key for update of i skip locked
)
delete from idempotency i using old where i.org_id = any (array[old.org_id]) and i.key = old.key
