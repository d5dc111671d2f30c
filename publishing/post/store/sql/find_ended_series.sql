-- publishing.SeriesEnded
--
-- Lists series, in the shards that the process owns, whose current occurrence has ended or that have stopped since they
-- were last checked. A series that is set aside is left out until it may be retried.
--
-- Organizations take turns, so that one with many such series does not keep those of others from being found. Within an
-- organization, the series that have waited longest come first.
--
--   $1 shards smallint[]: shards of the process
--   $2 node uuid: the process
--   $3 most bigint: the maximum number of series
--
--   PREPARE find_ended_series (smallint[], uuid, bigint) AS
--   EXPLAIN EXECUTE find_ended_series (null, null, null);
with ended as materialized (
  -- The ended occurrences that their series has not moved past. Materialized so that no plan begins with all series.
  select p.org_id, p.series_id, p.occurrence, p.updated_at from post p
  where p.shard = any (array(
      select s.shard from shard s
      where s.shard = any ($1::smallint[]) and s.owner = $2
        and exists (select from node n where n.id = $2 and n.expires_at > clock_timestamp())))
    and p.occurrence is not null and not p.series_passed
    and (p.deleted_at is not null or p.state in ('PUBLISHED', 'ERROR'))
)
select org_id, id from (
  -- turn: the position of the series within its organization
  select s.org_id, s.id, min(e.updated_at) as since,
    row_number() over (partition by s.org_id order by min(e.updated_at), s.id) as turn
  from ended e
  cross join lateral (
    -- The series, unless this is a later occurrence that ended before its turn: it waits for the turn.
    select s.org_id, s.id from series s
    where s.org_id = e.org_id and s.id = e.series_id
      and (e.occurrence <= s.number or s.stopped_at is not null) and (s.retry_at is null or s.retry_at <= now())
    offset 0) s
  group by s.org_id, s.id) w
order by turn, since, id limit $3
