-- The next occurrence of a repeated post is written by a step of the service (publishing.Series), not by a trigger.
drop trigger post_series on post;
drop function series_next();
drop function write_occurrence(uuid, uuid, integer);
drop function occurs(timestamptz, integer, integer, timestamptz);
drop function occurrence_at(timestamp, text, integer, integer);

-- True once the series has moved past this occurrence. Only a hint for the index below: series.number is what counts. Every
-- occurrence begins as not passed, so what an earlier version left behind is found too. The condition is on occurrence, which is set
-- when series_id is: no query for this index can be planned with post_series, which would be read whole.
alter table post add column series_passed boolean not null default false;
create index post_series_ended on post (shard, updated_at)
  where occurrence is not null and not series_passed and (deleted_at is not null or state in ('PUBLISHED', 'ERROR'));

-- A number has one row, whoever writes it.
drop index post_series;
create unique index post_series on post (org_id, series_id, occurrence) where series_id is not null;
drop function occurrence_id(uuid, integer);

-- A series whose next occurrence could not be written: how often in a row, and when it is tried again.
alter table series add column retries integer not null default 0, add column retry_at timestamptz;

-- When the last pause of a channel ended: what was due before it and was missed was kept back by the pause.
alter table channel_queue add column resumed_at timestamptz;

-- The clock finds the series, and a tenant's transaction writes: the clock reads no content.
create policy clock on series for select to crier_clock using (true);
grant select (org_id, id, number, stopped_at, retry_at) on series to crier_clock;
grant select (series_id, occurrence, series_passed) on post to crier_clock;
