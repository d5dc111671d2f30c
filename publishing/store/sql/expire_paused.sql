-- publishing.HeldExpire
--
-- Gives up the posts that a pause has kept back for too long, when that pause has just been deleted and no other one
-- reaches their channel. The channels are still marked as paused. The caller has locked the organization.
--
-- Result: none; the number of rows written is that of the posts and followers that were given up.
--
--   $1 scope text: publishing.PauseScope
--   $2 subject uuid: the organization, the customer or the channel
--   $3 most double precision: milliseconds that a pause may keep a post back
--   $4 by text: who has ended the pause
--   $5 node_name text: name of the process in timelines
--
--   PREPARE expire_paused (text, uuid, double precision, text, text) AS
--   EXPLAIN EXECUTE expire_paused (null, null, null, null, null);
with kept_back as (
  -- The queued posts of channels that the pause has reached and no other one reaches, locked.
  select p.id from post p join channel_queue q on q.channel_id = p.channel_id
  where p.channel_id in (
      select c.id from channel c
      where c.deleted_at is null
        and ($1 = 'organization' or $1 = 'customer' and c.customer_id = $2 or $1 = 'channel' and c.id = $2))
    and q.paused
    and not exists (
      select 1 from pause u join channel c on c.org_id = u.org_id and c.id = p.channel_id
      where u.subject in (c.org_id, c.customer_id, c.id))
    and p.state = 'QUEUE' and p.deleted_at is null and p.due <= now() - $3 * interval '1 millisecond'
  order by p.id for no key update of p
), failed as (
  -- The posts, given up.
  update post p set state = 'ERROR',
    error = 'Publishing was paused at the time of the post, and for too long after it.' ||
      case when p.maybe_sent then
        ' A call for it may have reached the platform and was never answered: look there before publishing it again.'
      else '' end,
    error_code = case when p.maybe_sent then 'outcome_unknown' else 'missed' end,
    outcome_unknown = p.maybe_sent, updated_at = now()
  from kept_back k where p.id = k.id
  returning p.org_id, p.id, p.group_id, p.error_code
), freed_channel as (
  -- The channels that such a post kept busy while it backed off.
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
select org_id, id, 'failed', $4, nullif($5, ''), error_code from failed
union all
select org_id, id, 'failed', $4, nullif($5, ''), 'predecessor_failed' from failed_follower
