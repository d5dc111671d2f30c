-- publishing.SeriesNamed
--
-- Finds an active series by the id of one of its occurrences, whose ids differ only in their last bytes. A series whose
-- current occurrence is a draft is left out.
--
-- Result: the organization, when the series was created, when the current occurrence is published, now, the numbers of
-- the later occurrences that have a row, and the columns of the list: the series and how its template was created.
--
-- The columns of the list projectedColumns are in Go: see README.md.
--
--   $1 low uuid: the smallest id that the series may have
--   $2 high uuid: the largest
--
--   PREPARE find_series_by_id (uuid, uuid) AS
--   EXPLAIN EXECUTE find_series_by_id (null, null);
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
where s.stopped_at is null and s.id between $1 and $2
