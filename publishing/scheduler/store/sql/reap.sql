-- publishing.Reap
--
-- Ends the claims of posts whose process is gone or did not renew them in time. Each post is checked again.
--
-- A post whose call had not begun goes back to the queue and keeps its channel. From the second time in a row, it waits
-- longer each time, which separates a post that ends its process from the posts that were in progress beside it. A post
-- that was being sent may be published: its outcome is unknown, and the platform is asked.
--
-- Result: how many claims were ended.
--
--   $1 posts uuid[]: the posts
--   $2 most bigint: how often in a row the process of a post may end before the post is given up
--   $3 node_name text: name of the process in timelines
--
--   PREPARE reap (uuid[], bigint, text) AS
--   EXPLAIN EXECUTE reap (null, null, null);
with dead_claim as (
  -- The posts that still have a dead claim, locked with the queues of their channels.
  select p.id from unnest($1::uuid[]) u(id)
  join post p on p.id = any (array[u.id])
  join channel_queue q on q.channel_id = any (array[p.channel_id])
  where (p.state = 'PUBLISHING'
    and (p.claim_until < now() or not exists (select from node n where n.id = p.claim_holder))) is true
  order by u.id for no key update of p, q skip locked
), reaped as (
  -- The posts: UNKNOWN if their call was about to be made, ERROR if they are given up, else QUEUE.
  update post p set
    state = case
      when p.phase = 'committing' then 'UNKNOWN'
      when p.deleted_at is not null or p.reaps + 1 >= $2::bigint then 'ERROR'
      else 'QUEUE' end,
    error = case
      when p.phase = 'committing' then null
      when p.deleted_at is not null then 'The post was deleted while it was being published.'
      when p.reaps + 1 >= $2::bigint then
        'The process that prepared this post ended ' || p.reaps + 1 || ' times in a row.' || case when p.maybe_sent then
        ' A call for it may have reached the platform but was never answered: check there before publishing it again.'
        else '' end end,
    error_code = case
      when p.phase = 'committing' then null
      when p.maybe_sent and (p.deleted_at is not null or p.reaps + 1 >= $2::bigint) then 'outcome_unknown'
      when p.deleted_at is not null then 'deleted'
      when p.reaps + 1 >= $2::bigint then 'took_too_long' end,
    outcome_unknown = p.phase <> 'committing' and p.maybe_sent
      and (p.deleted_at is not null or p.reaps + 1 >= $2::bigint),
    maybe_sent = p.maybe_sent or p.phase = 'committing',
    reaps = p.reaps + 1,
    not_before = case when p.phase <> 'committing' and p.reaps > 0
      then now() + least(300, 2 ^ (p.reaps + 1)) * interval '1 second' end,
    claim_until = case when p.phase = 'committing' then now() end,
    claim_token = case when p.phase = 'committing' then p.claim_token end,
    claim_holder = case when p.phase = 'committing' then p.claim_holder end,
    phase = case when p.phase = 'committing' then p.phase end,
    updated_at = now()
  from dead_claim d where p.id = any (array[d.id])
  returning p.org_id, p.id, p.group_id, p.state, p.channel_id, p.deleted_at
), unknown_publication as (
  -- The publications of the calls that may have been made.
  update publication x set maybe_sent = true
  from reaped r
  where r.state = 'UNKNOWN' and x.post_id = any (array[r.id]) and x.phase = 'committing'
), freed_channel as (
  -- The channels of the posts that were given up.
  update channel_queue q set busy_post = null, done_at = now()
  from reaped r
  where q.channel_id = any (array[r.channel_id]) and q.busy_post = r.id and r.state = 'ERROR'
), failed_follower as (
  -- The followers of the posts that were given up.
  update post f set state = 'ERROR', error = 'The part before this one was not published.',
    error_code = 'predecessor_failed', updated_at = now()
  from reaped r
  where f.group_id = any (array[r.group_id]) and (f.org_id = r.org_id and f.state = 'WAITING') is true
    and f.deleted_at is null and r.state = 'ERROR'
  returning f.org_id, f.id
), timeline as (
  -- What happened, in the timelines of the posts.
  insert into post_event (org_id, post_id, event, node, reason)
  select org_id, id, case state when 'UNKNOWN' then 'unknown' when 'ERROR' then 'failed' else 'returned' end, $3,
    'its worker is gone'
  from reaped
  union all
  select org_id, id, 'failed', $3, 'predecessor_failed' from failed_follower
)
select count(*) from reaped
