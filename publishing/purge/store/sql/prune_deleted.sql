-- publishing.PruneDeleted
--
-- Deletes posts that were deleted long ago, a whole group at a time: what an edit replaced may still be on its
-- platform, so its release ids are kept as long as the post.
--
-- A group with a post that is still needed is left out before any of it is locked; a settled post stays settled. At
-- most 2000 posts of the other groups are deleted: first those that an edit dropped, which no other post refers to, and
-- then all the rest of a group at once. The time of the statement is linear in the posts of the groups, so a group with
-- more than about 500,000 dropped posts may never be deleted. Rows that another transaction has locked are skipped.
--
-- A post is settled if it was deleted long enough ago, and:
--   - no call for it is in progress or unaccounted for;
--   - it is not in the template of an active series;
--   - if it is an occurrence of a series, it is before the current one, whose number is then the highest, so that no
--     number is used a second time; or the series has stopped and all of its occurrences are deleted.
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
  -- The posts of those groups, with whether an edit dropped them and whether they are settled.
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
  -- The posts of the groups in which all posts are settled, as many as are deleted at once.
  select m.group_id, m.id, m.dropped from member m join post p on p.id = any (array[m.id])
  where m.group_id not in (select group_id from member where not settled)
  order by m.dropped desc, m.group_id limit 2000 for update of p skip locked
)
delete from post p using locked l
where p.id = any (array[l.id])
  and (l.dropped or l.group_id not in (select group_id from member where id not in (select id from locked)))
