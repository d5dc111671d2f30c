-- publishing.Expire
--
-- Gives up queued posts that are too late. Each post is checked again.
--
-- Result: how many posts were given up.
--
--   $1 posts uuid[]: the posts
--   $2 max_late double precision: milliseconds after which a post is too late to be published
--   $3 node_name text: name of the process in timelines
--
--   PREPARE expire (uuid[], double precision, text) AS
--   EXPLAIN EXECUTE expire (null, null, null);
with late as (
  -- The posts that are still too late, locked with the queues of their channels.
  select p.id from unnest($1::uuid[]) u(id)
  join post p on p.id = any (array[u.id])
  join channel_queue q on q.channel_id = any (array[p.channel_id])
  where (p.state = 'QUEUE' and p.deleted_at is null and p.due < now() - $2 * interval '1 millisecond') is true
  order by u.id for no key update of p, q skip locked
), failed as (
  -- The posts, given up.
  update post p set state = 'ERROR', updated_at = now(),
    error = 'The post could not be published within ' || ($2::bigint / 60000) || ' minutes of its time.' ||
      case when p.maybe_sent then
        ' A call for it may have reached the platform but was never answered: check there before publishing it again.'
      else '' end,
    error_code = case when p.maybe_sent then 'outcome_unknown' else 'missed' end,
    outcome_unknown = p.maybe_sent
  from late e where p.id = any (array[e.id])
  returning p.org_id, p.id, p.group_id, p.channel_id, p.error_code
), freed_channel as (
  -- The channels that these posts kept busy while they backed off.
  update channel_queue q set busy_post = null
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
