-- publishing.WebhookDue
--
-- Finds endpoints with something to send that no task has taken: of each organization as many as it may have under way
-- at once, those that work and those that fail or are slow counted apart, so that one of these keeps no other waiting.
--
-- Result: organization and endpoint, the longest due first.
--
--   $1 now timestamptz: the time
--   $2 most bigint: endpoints of one organization that may be under way at once
--   $3 all_of_them bigint: how many at most
--
--   PREPARE webhook_due (timestamptz, bigint, bigint) AS
--   EXPLAIN EXECUTE webhook_due (null, null, null);
with due as (
  -- Those that wait, numbered within their organization.
  select w.org_id, w.id, w.next_at, a.aside,
    row_number() over (partition by w.org_id, a.aside order by w.next_at, w.id) as place
  from webhook w, lateral (select w.failing_since is not null or coalesce(w.slow_until > $1, false) as aside) a
  where w.next_at <= $1 and coalesce(w.queued_until <= $1, true) and coalesce(w.running_until <= $1, true)
)
select d.org_id, d.id from due d
where d.place + (
    select count(*) from webhook b
    where b.org_id = d.org_id and (b.failing_since is not null or coalesce(b.slow_until > $1, false)) = d.aside
      and (b.queued_until > $1 or b.running_until > $1)) <= $2
order by d.next_at, d.id limit $3
