-- publishing.HeldExpire
--
-- Gives up the posts that a pause has kept back for too long, when that pause has just been deleted and no other one
-- reaches their channel. What fell due since the time $6 is given up in any case. The channels are still marked as
-- paused. The caller has locked the organization.
--
-- Result: none; the number of rows written is that of the posts and followers that were given up.
--
--   $1 scope text: publishing.PauseScope
--   $2 subject uuid: the organization, the customer or the channel; for a stop the organization
--   $3 most double precision: milliseconds that a pause may keep a post back
--   $4 by text: who has ended the pause
--   $5 node_name text: name of the process in timelines
--   $6 since timestamp with time zone: what fell due since then is given up, also where another pause goes on; may be
--      null
--
--   PREPARE expire_paused (text, uuid, double precision, text, text, timestamp with time zone) AS
--   EXPLAIN EXECUTE expire_paused (null, null, null, null, null, null);
with kept_back as (
  -- The queued posts of channels that the pause has reached, locked.
  select p.id from post p join channel_queue q on q.channel_id = p.channel_id
  where p.channel_id in (
      select c.id from channel c
      where c.deleted_at is null
        and ($1 in ('organization', 'instance') or $1 = 'customer' and c.customer_id = $2
          or $1 = 'channel' and c.id = $2))
    and q.paused
    and p.state = 'QUEUE' and p.deleted_at is null and p.due <= now()
    and (p.due >= $6
      or p.due <= now() - $3 * interval '1 millisecond'
        and not exists (
          select 1 from pause u join channel c on c.org_id = u.org_id and c.id = p.channel_id
          where u.subject in (c.org_id, c.customer_id, c.id)))
  order by p.id for no key update of p
), failed as (
  -- The posts, given up.
  update post p set state = 'ERROR',
    error = case when $1 = 'instance' then 'Publishing for the organization was stopped at the time of the post.'
      else 'Publishing was paused at the time of the post, and for too long after it.' end ||
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
