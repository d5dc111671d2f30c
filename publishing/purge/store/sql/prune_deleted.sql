-- publishing.PruneDeleted
--
-- Deletes posts that were deleted long ago, by whole groups: what an edit replaced may still be at its platform, and
-- its release ids stay as long as the post.
--
-- A group of which any post is still needed is left out before anything of it is locked; what is settled stays so. Of
-- the others at most 2000 posts go: those first that an edit dropped, which no other post names, and then all the rest
-- of a group at once. The time of the statement is linear in the posts of the groups, so a group of which more than
-- some 500,000 posts were dropped may never be deleted. What another transaction has locked is left out.
--
-- A post is settled when it was deleted for long enough, and:
--   - no call for it is under way or unaccounted for;
--   - it is not in the template of a series that goes on;
--   - an occurrence of a series is behind the current one, whose number is then the highest, so that no number is used
--     a second time; or the series has stopped and all of its occurrences are deleted.
--
--   $1 orgs uuid[]: the organization of each post
--   $2 posts text[]: the first posts of groups
--   $3 age double precision: milliseconds for which a deleted post is kept
--
--   PREPARE prune_deleted (uuid[], text[], double precision) AS
--   EXPLAIN EXECUTE prune_deleted (null, null, null);
with asked as (
  -- The groups of the posts.
  select p.org_id, p.group_id from unnest($1::uuid[], $2::text[]) u(org, id)
  join post p on p.id = any (array[u.id::uuid]) and (p.org_id = u.org) is true
), member as (
  -- The posts of those groups: whether an edit dropped it, and whether it is settled.
  select p.group_id, p.id, p.after_post is null and p.delay_minutes > 0 as dropped,
    (p.deleted_at < now() - $3 * interval '1 millisecond') is true
      and not p.maybe_sent and (p.state in ('PUBLISHING', 'UNKNOWN')) is false
      and not exists (
        select from publication x
        where x.post_id = any (array[p.id]) and (x.phase = 'committing' or x.maybe_sent and x.phase <> 'done') offset 0)
      and not exists (
        select from series s
        where s.template = any (array[p.group_id]) and (s.org_id = p.org_id) is true and s.stopped_at is null offset 0)
      and (p.series_id is null
        or exists (
          select from series s
          where s.org_id = any (array[p.org_id]) and s.id = p.series_id
            and (p.series_passed and p.occurrence < s.number
              or s.stopped_at is not null
                and not exists (
                  select from post o
                  where o.org_id = any (array[s.org_id]) and o.series_id = s.id and o.deleted_at is null))
          offset 0)) as settled
  from asked a join post p on p.group_id = any (array[a.group_id]) and (p.org_id = a.org_id) is true
), locked as (
  -- The posts of the groups of which all are settled, as many as go at once.
  select m.group_id, m.id, m.dropped from member m join post p on p.id = any (array[m.id])
  where m.group_id not in (select group_id from member where not settled)
  order by m.dropped desc, m.group_id limit 2000 for update of p skip locked
)
delete from post p using locked l
where p.id = any (array[l.id])
  and (l.dropped or l.group_id not in (select group_id from member where id not in (select id from locked)))
