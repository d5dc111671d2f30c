-- publishing.PartDone
--
-- Stores that a part with successors is published, whichever process sends it and whatever became of the claim. The
-- post changes only if its next part may be sent: the claim must be current, and the part must not be published under
-- another release id. If it is, or may be because another transaction has just stored one, Finish stores the second
-- release id.
--
-- The post is locked before its publication, as everywhere.
--
--   $1 post uuid: the post
--   $2 token uuid: its claim token
--   $3 publication uuid: the publication of the part
--   $4 release_id text: what the platform calls the part
--   $5 release_url text: its address
--   $6 ref jsonb: what the parts after it reply to
--   $7 claim_time double precision: milliseconds that the claim lasts from now
--   $8 node_name text: name of the process in timelines
--
--   PREPARE save_part_done (uuid, uuid, uuid, text, text, jsonb, double precision, text) AS
--   EXPLAIN EXECUTE save_part_done (null, null, null, null, null, null, null, null);
with locked_post as (
  -- The post, if the claim is current.
  select from post where id = $1 and claim_token = $2 for no key update
), done_publication as (
  -- The publication. The count makes the lock come first and is never less than zero.
  update publication
  set phase = 'done', maybe_sent = false, release_id = $4, release_url = $5, ref = $6, done_at = now()
  where id = $3 and post_id = $1 and phase <> 'done' and (select count(*) from locked_post) >= 0
  returning org_id, post_id, position
), timeline as (
  -- The part, in the timeline of the post.
  insert into post_event (org_id, post_id, event, node, reason)
  select org_id, post_id, 'sent', $8, 'part ' || position + 1 from done_publication
)
update post
set phase = 'preparing', call_ended = false, failing_since = null, maybe_sent = false, reaps = 0,
  claim_until = now() + $7 * interval '1 millisecond'
where id = $1 and claim_token = $2 and state = 'PUBLISHING' and deleted_at is null
  and (exists (select from done_publication)
    or exists (
      select from publication x
      where x.id = $3 and x.post_id = $1 and x.phase = 'done' and (x.release_id <> $4) is not true))
