-- publishing.PurgePosts
--
-- Deletes posts of an organization with everything that belongs to them, in whatever state they are. A group of which
-- a post is being sent is left out as a whole: what is sent later may answer what was sent before. So is a post that
-- another transaction has locked.
--
-- Result: none; the number of rows written is that of the posts that were deleted.
--
--   $1 org uuid: the organization
--   $2 posts text[]: the posts
--
--   PREPARE purge_posts (uuid, text[]) AS
--   EXPLAIN EXECUTE purge_posts (null, null);
with doomed as (
  -- The posts, locked. The lock tests the first condition again on what was changed meanwhile.
  select p.id from post p
  where p.org_id = $1 and p.id = any ($2::text[]::uuid[])
    and (p.state = 'PUBLISHING' and p.claim_until > now()) is not true
    and not exists (
      select from post s
      where s.group_id = p.group_id and s.org_id = p.org_id and s.state = 'PUBLISHING' and s.claim_until > now())
  order by p.id for update of p skip locked
), follower as (
  -- The posts that stay for now and refer to one of them.
  update post f set after_post = null from doomed d
  where f.org_id = $1 and f.after_post = d.id and f.id not in (select id from doomed)
)
delete from post p using doomed d where p.org_id = $1 and p.id = d.id
