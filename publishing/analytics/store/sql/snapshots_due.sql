-- publishing.SnapshotsDue
--
-- Takes channels whose statistics are due for the daily snapshot, and keeps other calls from taking them until $6.
-- Channels with fewer failures come first, so that one that always fails does not hold up the others; then channels
-- that were never read; then those that have waited longest. It takes only a few channels of each organization and of
-- each server, so that one with thousands of channels leaves room for the others. It is for the role of the scheduler.
--
-- Result: organization, channel, connector, and the host that is asked, or the connector if the host is not known; for
-- each organization, in the order in which its channels are to be read.
--
--   $1 connectors text[]: the platforms that have statistics
--   $2 of_org bigint: the maximum number of channels of one organization
--   $3 of_server bigint: the maximum number of channels of one server
--   $4 total bigint: the maximum number of channels
--   $5 now timestamptz: the time
--   $6 again timestamptz: when a channel may be taken again
--
--   PREPARE snapshots_due (text[], bigint, bigint, bigint, timestamptz, timestamptz) AS
--   EXPLAIN EXECUTE snapshots_due (null, null, null, null, null, null);
with candidate as (
  select c.org_id, c.id, c.connector, coalesce(nullif(q.destination, ''), c.connector) as destination, i.next_at,
    coalesce(i.failures, 0) as failures,
    row_number() over (
      partition by c.org_id order by coalesce(i.failures, 0), i.next_at nulls first, c.id) as of_org
  from channel c
  left join insight i on i.org_id = c.org_id and i.subject = c.id
  left join channel_queue q on q.channel_id = c.id
  where c.connector = any ($1) and c.deleted_at is null and not c.refresh_needed
    and (i.next_at is null or i.next_at <= $5)
),
few as (
  select *, row_number() over (partition by destination order by failures, next_at nulls first, id) as of_server
  from candidate where of_org <= $2
),
due as (
  select * from few where of_server <= $3 order by failures, next_at nulls first, id limit $4
),
-- A concurrent call may have taken the channel.
taken as (
  insert into insight (org_id, subject, channel_id, next_at) select org_id, id, id, $6 from due
  on conflict (org_id, subject) do update set next_at = excluded.next_at
    where insight.next_at is null or insight.next_at <= $5
  returning org_id, subject
)
select t.org_id, t.subject as channel_id, d.connector, d.destination
from taken t
join due d on d.org_id = t.org_id and d.id = t.subject
order by t.org_id, d.of_org
