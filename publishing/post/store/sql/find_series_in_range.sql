-- publishing.SeriesInRange
--
-- Lists the active series that may have later occurrences in a range of time. A series whose current occurrence is a
-- draft is left out.
--
-- The anchor is a wall-clock time, which is less than two days away from its instant.
--
-- Result: as in find_series_by_id.sql.
--
-- The columns of the list projectedColumns are in Go: see README.md.
--
--   $1 start timestamptz: start of the range
--   $2 end timestamp: its end, in UTC
--   $3 customer uuid: only series of channels of this customer; null = all
--   $4 most bigint: the maximum number of series
--   $5 channel uuid: only series of this channel; null = all
--
--   PREPARE find_series_in_range (timestamptz, timestamp, uuid, bigint, uuid) AS
--   EXPLAIN EXECUTE find_series_in_range (null, null, null, null, null);
select s.org_id, s.created_at, p.publish_date as current, now() as now,
  array(
    select x.occurrence from post x
    where x.org_id = s.org_id and x.series_id = s.id and x.occurrence > greatest(s.number, s.base)) as stored
  /* , projectedColumns */
from series s
join post p on p.org_id = s.org_id and p.series_id = s.id and p.occurrence = s.number
  and (p.deleted_at is not null or p.state <> 'DRAFT')
join post t on t.org_id = s.org_id and t.group_id = s.template and t.after_post is null
join channel c on c.org_id = s.org_id and c.id = s.channel_id and c.deleted_at is null
where s.stopped_at is null
  and s.anchor <= $2::timestamp + interval '2 days' and (s.until_at is null or s.until_at >= $1)
  and ($3::uuid is null or c.customer_id = $3) and ($5::uuid is null or s.channel_id = $5)
limit $4
