-- publishing.PurgePosts
--
-- Deletes posts of an organization, in any state, with everything that belongs to them. A group with a post that is
-- being sent is left out as a whole, because a later part may reply to an earlier one. A post that another transaction
-- has locked is left out too.
--
-- Result: none; the number of affected rows is the number of deleted posts.
--
--   $1 org uuid: the organization
--   $2 posts text[]: the posts
--
--   PREPARE purge_posts (uuid, text[]) AS
--   EXPLAIN EXECUTE purge_posts (null, null);
with doomed as (
  -- The posts, locked. The lock checks the first condition again on rows that have changed in the meantime.
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
