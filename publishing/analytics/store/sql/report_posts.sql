-- publishing.ReportPosts
--
-- Counts the threads of a report by state, for each day and for each platform. The state of a thread is the one that
-- publishing.Thread.Effective returns, as in the trigger post_webhook.
--
-- Result: the number of the day or null, the platform or null, and the numbers of drafts, scheduled, published and
-- failed threads.
--
--   $1 customer uuid: count only this customer's posts; null = all
--   $2 days timestamptz[]: the starts of the days, and the end of the last one
--
--   PREPARE report_posts (uuid, timestamptz[]) AS
--   EXPLAIN EXECUTE report_posts (null, null);
with follower as (
  -- The first follower of each thread that is not published; a failed one comes first. A follower is never dated before
  -- its thread.
  select distinct on (f.group_id) f.group_id, f.state
  from post f
  where f.publish_date >= ($2::timestamptz[])[1] and f.after_post is not null and f.deleted_at is null
    and f.state <> 'PUBLISHED'
  order by f.group_id, f.state <> 'ERROR', f.id
), thread as (
  -- The state that each thread shows.
  select width_bucket(p.publish_date, $2) - 1 as day, c.connector,
    case when p.state <> 'PUBLISHED' then p.state else coalesce(f.state, 'PUBLISHED') end as shown
  from post p
  join channel c on c.org_id = p.org_id and c.id = p.channel_id
  left join follower f on f.group_id = p.group_id
  where p.publish_date >= ($2::timestamptz[])[1] and p.after_post is null and p.delay_minutes = 0
    and p.deleted_at is null and ($1::uuid is null or c.customer_id = $1)
)
select t.day, t.connector,
  count(*) filter (where t.shown = 'DRAFT') as draft,
  count(*) filter (where t.shown in ('QUEUE', 'WAITING', 'PUBLISHING', 'UNKNOWN')) as scheduled,
  count(*) filter (where t.shown = 'PUBLISHED') as published,
  count(*) filter (where t.shown = 'ERROR') as failed
from thread t
group by grouping sets ((t.day), (t.connector))
