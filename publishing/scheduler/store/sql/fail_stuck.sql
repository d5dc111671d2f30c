-- publishing.FailStuck
--
-- Gives up posts that have been preparing for too long, although their claims are renewed. Each post is checked again.
-- Nothing was sent under such a claim, and nothing will be: without the token, its process makes no call.
--
-- Result: how many posts were given up.
--
--   $1 posts uuid[]: the posts
--   $2 most double precision: milliseconds that preparing a post may take
--   $3 node_name text: name of the process in timelines
--
--   PREPARE fail_stuck (uuid[], double precision, text) AS
--   EXPLAIN EXECUTE fail_stuck (null, null, null);
with stuck as (
  -- The posts that are still preparing, locked with the queues of their channels.
  select p.id from unnest($1::uuid[]) u(id)
  join post p on p.id = any (array[u.id])
  join channel_queue q on q.channel_id = any (array[p.channel_id])
  where (p.state = 'PUBLISHING' and p.phase = 'preparing'
    and p.updated_at < now() - $2 * interval '1 millisecond') is true
  order by u.id for no key update of p, q skip locked
), failed as (
  -- The posts, given up.
  update post p set state = 'ERROR', phase = null, claim_token = null, claim_holder = null, claim_until = null,
    updated_at = now(),
    error = 'The post was still not ready after ' || ($2::bigint / 60000) || ' minutes of preparation.' ||
      case when p.maybe_sent then
        ' A call for it may have reached the platform but was never answered: check there before publishing it again.'
      else '' end,
    error_code = case when p.maybe_sent then 'outcome_unknown' else 'took_too_long' end,
    outcome_unknown = p.maybe_sent
  from stuck s where p.id = any (array[s.id])
  returning p.org_id, p.id, p.group_id, p.channel_id, p.error_code
), freed_channel as (
  -- Their channels.
  update channel_queue q set busy_post = null, done_at = now()
  from failed u
  where q.channel_id = any (array[u.channel_id]) and q.busy_post = u.id
), failed_follower as (
  -- Their followers.
  update post f set state = 'ERROR', error = 'The part before this one was not published.',
    error_code = 'predecessor_failed', updated_at = now()
  from failed u
  where f.group_id = any (array[u.group_id]) and (f.org_id = u.org_id and f.state = 'WAITING') is true
    and f.deleted_at is null
  returning f.org_id, f.id
), timeline as (
  -- What happened, in the timelines of the posts.
  insert into post_event (org_id, post_id, event, node, reason)
  select org_id, id, 'failed', $3, error_code from failed
  union all
  select org_id, id, 'failed', $3, 'predecessor_failed' from failed_follower
)
select count(*) from failed
