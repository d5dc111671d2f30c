-- publishing.WebhookSources
--
-- Locks the oldest events of the organization that have not been delivered yet, and reads what their bodies say about
-- the posts. Events that another transaction has locked are left out. A post that is gone has no group.
--
-- Result: one row for each event, the oldest first.
--
--   $1 org uuid: the organization
--   $2 most bigint: the maximum number of events
--   $3 except bigint[]: events that are left out
--
--   PREPARE webhook_sources (uuid, bigint, bigint[]) AS
--   EXPLAIN EXECUTE webhook_sources (null, null, null);
with pending as (
  -- The events.
  select e.id, e.at, e.event, e.post_id, e.state, e.release_id, e.release_url, e.error, e.error_code, e.data
  from webhook_event e where e.org_id = $1 and e.id <> all ($3::bigint[])
  order by e.id limit $2 for update skip locked
)
select e.id, e.at, e.event, e.post_id, e.data, e.error, e.error_code, p.group_id, p.channel_id, p.publish_date,
  coalesce(e.state, case when p.state in ('WAITING', 'PUBLISHING', 'UNKNOWN') then 'QUEUE' else p.state end, '')
    as state,
  coalesce(e.release_id, p.release_id) as release_id, coalesce(e.release_url, p.release_url) as release_url,
  coalesce(a.content, '') as content, coalesce(a.html, false) as html,
  coalesce(c.name, '') as channel_name, coalesce(c.connector, '') as connector, coalesce(c.picture, '') as picture,
  u.id as customer_id, u.name as customer_name
from pending e
left join post p on p.org_id = $1 and p.id = e.post_id
left join part a on a.org_id = $1 and a.id = e.post_id
left join channel c on c.org_id = $1 and c.id = p.channel_id
left join customer u on u.org_id = $1 and u.id = c.customer_id
order by e.id
