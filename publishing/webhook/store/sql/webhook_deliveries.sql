-- publishing.WebhookDeliveries
--
-- Inserts deliveries, numbered for each endpoint, and marks each endpoint as having something to send. The caller has
-- locked the endpoints.
--
--   $1 org uuid: the organization
--   $2 ids uuid[]: the deliveries; $3 to $6 have one element for each
--   $3 webhooks uuid[]: their endpoints
--   $4 events text[]: publishing.WebhookEvent
--   $5 posts uuid[]: the first post of the thread; null = none
--   $6 bodies text[]: what is sent
--   $7 now timestamptz: the time
--
--   PREPARE webhook_deliveries (uuid, uuid[], uuid[], text[], uuid[], text[], timestamptz) AS
--   EXPLAIN EXECUTE webhook_deliveries (null, null, null, null, null, null, null);
with numbered as (
  -- The deliveries with their numbers.
  select u.id, u.webhook, u.event, u.post, u.body,
    w.last_number + row_number() over (partition by u.webhook order by u.place) as number
  from unnest($2::uuid[], $3::uuid[], $4::text[], $5::uuid[], $6::text[]) with ordinality
    u(id, webhook, event, post, body, place)
  join webhook w on w.org_id = $1 and w.id = u.webhook
), added as (
  -- The rows.
  insert into webhook_delivery (org_id, id, webhook_id, number, event, post_id, body, next_at, created_at)
  select $1, n.id, n.webhook, n.number, n.event, n.post, n.body, $7, $7 from numbered n
)
-- The endpoints.
update webhook w set last_number = a.last,
  next_at = least(w.next_at, greatest($7::timestamptz, coalesce(w.not_before, $7)))
from (select n.webhook, max(n.number) as last from numbered n group by n.webhook) a
where w.org_id = $1 and w.id = a.webhook
