-- publishing.WebhookTurns
--
-- Walks the index from organization to organization, and finds those with something to send, now or later. It finds
-- none unless more endpoints are due than WebhookDue considers alone.
--
-- Result: organizations in the order of their ids.
--
--   $1 now timestamptz: the time
--   $2 first bigint: how many of the longest due endpoints WebhookDue considers
--   $3 after uuid: the organization after which to begin
--   $4 most bigint: the maximum number of organizations
--
--   PREPARE webhook_turns (timestamptz, bigint, uuid, bigint) AS
--   EXPLAIN EXECUTE webhook_turns (null, null, null, null);
with recursive many as (
  -- One row if more endpoints are due than that.
  select from (values (false), (true)) k(aside), lateral (
    select from webhook w where w.aside = k.aside and w.next_at <= $1 order by w.next_at offset $2 limit 1) w
  limit 1
), org as (
  (select w.org_id from many, lateral (
    select w.org_id from webhook w where w.next_at is not null and w.org_id > $3 order by w.org_id limit 1) w)
  union all
  select (select w.org_id from webhook w where w.next_at is not null and w.org_id > o.org_id order by w.org_id limit 1)
  from org o where o.org_id is not null
)
select o.org_id from org o where o.org_id is not null limit $4
