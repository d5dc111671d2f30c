-- publishing.PostInsert
--
-- Inserts posts, in order. A missing due time becomes now, and so does a past one unless the post is a draft; a
-- follower has no due time until its predecessor ends. A follower that is inserted later gets the round of its group.
--
--   $1 org uuid: the organization
--   $2 ids uuid[]: the posts; the other lists have one element for each
--   $3 groups uuid[]: their groups
--   $4 channels uuid[]: their channels
--   $5 states text[]: publishing.State
--   $6 due timestamptz[]: when they are due; null = now
--   $7 publish_dates timestamptz[]: what the calendar shows; null = now
--   $8 after uuid[]: the predecessor of a follower
--   $9 delays integer[]: its delay in minutes
--   $10 shard smallint: the shard of the organization
--   $11 settings text[]: settings of the connector, as JSON
--   $12 methods text[]: publishing.CreationMethod
--   $13 series uuid[]: the series of an occurrence; null = the post is not repeated
--   $14 occurrences integer[]: its number
--   $15 intervals integer[]: days between the occurrences
--   $16 tags text[]: its tags, as the text of a uuid[]
--
--   PREPARE insert_posts (uuid, uuid[], uuid[], uuid[], text[], timestamptz[], timestamptz[], uuid[], integer[],
--     smallint, text[], text[], uuid[], integer[], integer[], text[]) AS
--   EXPLAIN EXECUTE insert_posts (null, null, null, null, null, null, null, null, null, null, null, null, null, null,
--     null, null);
insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date, after_post, delay_minutes,
  settings, creation_method, series_id, occurrence, interval_days, tags, republish)
select $1, u.id, u.group_id, u.channel_id, $10, u.state,
  case
    when u.state = 'WAITING' then null
    when u.state = 'DRAFT' then coalesce(u.due, now())
    else greatest(u.due, now()) end,
  coalesce(u.publish_date, now()), u.after_post, u.delay_minutes, u.settings::jsonb, u.creation_method,
  u.series_id, u.occurrence, u.interval_days, u.tags::uuid[],
  coalesce((
    select max(r.republish) from post r
    where r.org_id = $1 and r.group_id = u.group_id and r.deleted_at is null), 1)
from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::uuid[],
    $9::integer[], $11::text[], $12::text[], $13::uuid[], $14::integer[], $15::integer[], $16::text[])
  with ordinality as u(id, group_id, channel_id, state, due, publish_date, after_post, delay_minutes, settings,
    creation_method, series_id, occurrence, interval_days, tags, n)
order by u.n
