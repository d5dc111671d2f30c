-- publishing.SeriesSetAside
--
-- Keeps a series whose next occurrence could not be written out of EndedSeries for a while: 1, 2, 4 ... minutes, at
-- most an hour. The first failure in a row is added to the timeline of the occurrence that has no successor. A series
-- that another transaction has locked is left unchanged.
--
--   $1 series uuid: the series
--   $2 node_name text: name of the process in timelines
--   $3 reason text: why, for people
--
--   PREPARE set_aside_series (uuid, text, text) AS
--   EXPLAIN EXECUTE set_aside_series (null, null, null);
with locked as (
  -- The series, if it is not locked.
  select s.id from series s where s.id = $1 for no key update skip locked
), set_aside as (
  -- The series, with the next failure.
  update series s
  set retries = s.retries + 1, retry_at = now() + least(60, 2 ^ least(s.retries, 6)) * interval '1 minute'
  from locked k where s.id = k.id
  returning s.org_id, s.id, s.number, s.retries
)
insert into post_event (org_id, post_id, event, node, reason)
select p.org_id, p.id, 'delayed', nullif($2, ''), $3
from set_aside a join post p on p.org_id = a.org_id and p.series_id = a.id and p.occurrence = a.number
where a.retries = 1
