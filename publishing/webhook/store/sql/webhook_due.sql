-- publishing.WebhookDue
--
-- Finds endpoints with something to send that no task has taken: for each organization, and for all organizations of
-- one creator, as many as may be in progress at once. Endpoints that work and endpoints set aside are counted
-- separately, so that neither kind delays the other. It looks at a bounded number of endpoints, however many are due.
-- The creator of an organization is the mailbox of the person who created it or, if that person is no longer a member,
-- of its owner. An organization that the operator created has its own share.
--
-- Result: organization and endpoint, the longest due first.
--
--   $1 now timestamptz: the time
--   $2 per_org bigint: endpoints of one organization that may be in progress at once
--   $3 per_creator bigint: endpoints of all organizations of one creator that may be in progress at once
--   $4 first bigint: how many of the longest due endpoints of each kind (working, set aside) are considered
--   $5 turns uuid[]: organizations whose endpoints are considered too
--   $6 all_of_them bigint: the maximum number of endpoints
--
--   PREPARE webhook_due (timestamptz, bigint, bigint, bigint, uuid[], bigint) AS
--   EXPLAIN EXECUTE webhook_due (null, null, null, null, null, null);
with kind as (
  select k.aside from (values (false), (true)) k(aside)
), candidate as (
  -- The longest due of all, and the longest due of each organization whose turn it is.
  select w.org_id, w.id, w.aside, w.next_at
  from kind k, lateral (
    select w.org_id, w.id, w.aside, w.next_at from webhook w
    where w.aside = k.aside and w.next_at <= $1
      and coalesce(w.queued_until <= $1, true) and coalesce(w.running_until <= $1, true)
    order by w.next_at limit $4) w
  union
  select w.org_id, w.id, w.aside, w.next_at
  from unnest($5::uuid[]) t(org_id), kind k, lateral (
    select w.org_id, w.id, w.aside, w.next_at from webhook w
    where w.org_id = t.org_id and w.aside = k.aside and w.next_at <= $1
      and coalesce(w.queued_until <= $1, true) and coalesce(w.running_until <= $1, true)
    order by w.next_at limit $2) w
), busy as (
  -- How many endpoints are in progress.
  select w.org_id, coalesce(u.mailbox, o.id) as creator, w.aside, count(*) as number
  from webhook w join organization o on o.id = w.org_id
  left join member m on m.org_id = o.id and m.person_id = o.created_by
  left join member s on s.org_id = o.id and s.role = 'SUPERADMIN' and o.created_by is not null
  left join person u on u.id = coalesce(m.person_id, s.person_id)
  where (w.queued_until is not null or w.running_until is not null) and (w.queued_until > $1 or w.running_until > $1)
  group by 1, 2, 3
), placed as (
  -- The candidates, numbered within their organization after the endpoints that are in progress there.
  select c.org_id, c.id, c.aside, c.next_at, coalesce(u.mailbox, o.id) as creator,
    coalesce(b.number, 0) + row_number() over (partition by c.org_id, c.aside order by c.next_at, c.id) as place
  from candidate c join organization o on o.id = c.org_id
  left join member m on m.org_id = o.id and m.person_id = o.created_by
  left join member s on s.org_id = o.id and s.role = 'SUPERADMIN' and o.created_by is not null
  left join person u on u.id = coalesce(m.person_id, s.person_id)
  left join busy b on b.org_id = c.org_id and b.aside = c.aside
), shared as (
  -- The candidates within the share of their organization, numbered within the share of their creator, whose
  -- organizations take turns.
  select p.org_id, p.id, p.aside, p.next_at, p.creator,
    row_number() over (partition by p.creator, p.aside order by p.place, p.next_at, p.id) as place
  from placed p where p.place <= $2
)
select s.org_id, s.id from shared s
left join (select b.creator, b.aside, sum(b.number)::bigint as number from busy b group by 1, 2) b
  on b.creator = s.creator and b.aside = s.aside
where s.place + coalesce(b.number, 0) <= $3
order by s.next_at, s.id limit $6
