-- publishing.InsightsSave
--
-- Stores the statistics that were read of a channel or a post. A day's metrics are merged into the stored ones and
-- replace those with the same label; if the merged metrics are too large, only the new ones are kept. A channel or post
-- that is gone is skipped, and so is a post that by now has another id on its platform.
--
-- Result: none.
--
--   $1 subject uuid: the channel or the post
--   $2 channel uuid: its channel
--   $3 post uuid: the post; null for a channel
--   $4 now timestamptz: when it was read
--   $5 next timestamptz: when the next day's snapshot is due; null leaves it unchanged
--   $6 days date[]: the days
--   $7 counts jsonb[]: objects of numbers, one for each day
--   $8 levels jsonb[]: objects of numbers, one for each day
--   $9 whole boolean[]: whether the day had ended
--   $10 release text: the id of the post on its platform; empty for a channel
--
--   PREPARE insights_save (uuid, uuid, uuid, timestamptz, timestamptz, date[], jsonb[], jsonb[], boolean[], text) AS
--   EXPLAIN EXECUTE insights_save (null, null, null, null, null, null, null, null, null, null);
with found as (
  select c.org_id from channel c
  where c.id = $2 and c.deleted_at is null
    and ($3::uuid is null or exists (
      select from post p where p.id = $3 and p.channel_id = c.id and p.release_id = $10))
),
read as (
  insert into insight (org_id, subject, channel_id, post_id, read_at, tried_at, problem, empty, next_at, release)
  select org_id, $1, $2, $3, $4, $4, '', cardinality($6::date[]) = 0, $5, $10 from found
  on conflict (org_id, subject) do update set read_at = $4, tried_at = $4, problem = '', empty = excluded.empty,
    next_at = case when $5 is null then insight.next_at else greatest($5, insight.again_at) end,
    failures = case when $5 is null then insight.failures else 0 end
    where insight.release = $10
  returning org_id
)
insert into insight_day (org_id, subject, day, counts, levels, whole)
select r.org_id, $1, u.day, u.counts, u.levels, u.whole
from read r, unnest($6::date[], $7::jsonb[], $8::jsonb[], $9::boolean[]) u(day, counts, levels, whole)
on conflict (org_id, subject, day) do update
  set
    counts = case when octet_length((insight_day.counts || excluded.counts)::text) <= 16384
      then insight_day.counts || excluded.counts else excluded.counts end,
    levels = case when octet_length((insight_day.levels || excluded.levels)::text) <= 16384
      then insight_day.levels || excluded.levels else excluded.levels end,
    whole = excluded.whole
  where insight_day.counts || excluded.counts <> insight_day.counts
    or insight_day.levels || excluded.levels <> insight_day.levels
    or insight_day.whole <> excluded.whole
