-- publishing.HeldExpire
--
-- Gives up the posts that a pause has kept back for too long, before that pause is deleted. Each post is checked again.
-- The conditions are the same as in find_kept_back.sql.
--
-- Result: none; the number of affected rows is the number of posts and followers that were given up.
--
--   $1 scope text: publishing.PauseScope
--   $2 subject uuid: the organization, the customer or the channel; for a stop, the organization
--   $3 most double precision: milliseconds that a pause may keep a post back
--   $4 all_since boolean: give up what fell due since the pause began even if another pause continues
--   $5 posts uuid[]: the posts
--   $6 by text: who ends the pause
--   $7 node_name text: name of the process in timelines
--
--   PREPARE expire_paused (text, uuid, double precision, boolean, uuid[], text, text) AS
--   EXPLAIN EXECUTE expire_paused (null, null, null, null, null, null, null);
with reached as materialized (
  -- The paused channels that the pause reaches, and whether another pause continues to reach each of them.
  select c.id, exists (
      select from pause u
      where u.subject in (c.org_id, c.customer_id, c.id) and (u.subject, u.scope) <> ($2, $1)) as still_paused
  from channel c join channel_queue q on q.channel_id = c.id
  where c.deleted_at is null and q.paused
    and ($1 in ('organization', 'instance') or $1 = 'customer' and c.customer_id = $2
      or $1 = 'channel' and c.id = $2)
), kept_back as (
  -- The posts to give up, locked.
  select p.id from post p join reached r on r.id = p.channel_id
  where p.id = any ($5) and p.state = 'QUEUE' and p.deleted_at is null and p.due <= now()
    and ($4 and p.due >= (select u.at from pause u where u.subject = $2 and u.scope = $1)
      or not r.still_paused and p.due <= now() - $3 * interval '1 millisecond')
  order by p.id for no key update of p
), failed as (
  -- The posts, given up.
  update post p set state = 'ERROR',
    error = case when $1 = 'instance' then 'Publishing for the organization was stopped when the post was due.'
      else 'Publishing was paused when the post was due, and for too long afterwards.' end ||
      case when p.maybe_sent then
        ' A call for it may have reached the platform but was never answered: check there before publishing it again.'
      else '' end,
    error_code = case when p.maybe_sent then 'outcome_unknown' else 'missed' end,
    outcome_unknown = p.maybe_sent, updated_at = now()
  from kept_back k where p.id = k.id
  returning p.org_id, p.id, p.group_id, p.error_code
), freed_channel as (
  -- The channels that these posts kept busy while they backed off.
  update channel_queue q set busy_post = null from failed u where q.busy_post = u.id
), failed_follower as (
  -- Their followers.
  update post f set state = 'ERROR', error = 'The part before this one was not published.',
    error_code = 'predecessor_failed', updated_at = now()
  from failed u
  where f.group_id = any (array[u.group_id]) and (f.org_id = u.org_id and f.state = 'WAITING') is true
    and f.deleted_at is null
  returning f.org_id, f.id
)
insert into post_event (org_id, post_id, event, by, node, reason)
select org_id, id, 'failed', $6, nullif($7, ''), error_code from failed
union all
select org_id, id, 'failed', $6, nullif($7, ''), 'predecessor_failed' from failed_follower
