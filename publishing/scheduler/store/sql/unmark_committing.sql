-- publishing.CommitUnmark
--
-- Takes back the mark of a call after a response that proves that nothing was published. It changes nothing if the
-- claim is lost, or if an earlier call of the part is known to have published it.
--
-- The post is locked before its publication, as everywhere, and both before either changes, so that a late success that
-- is stored in the meantime is seen.
--
--   $1 post uuid: the post
--   $2 token uuid: its claim token
--   $3 publication uuid: the publication of the call
--   $4 claim_time double precision: milliseconds that the claim lasts from now
--   $5 node_name text: name of the process in timelines
--
--   PREPARE unmark_committing (uuid, uuid, uuid, double precision, text) AS
--   EXPLAIN EXECUTE unmark_committing (null, null, null, null, null);
with locked_post as (
  -- The post, if the claim is current.
  select p.id, p.org_id from post p
  where p.id = $1 and p.claim_token = $2 and p.state = 'PUBLISHING' and p.phase = 'committing'
  for no key update
), locked_publication as (
  -- The post again, if the publication is not known to be published.
  select c.id, c.org_id
  from locked_post c join publication x on x.post_id = any (array[c.id])
  where x.id = $3 and x.phase = 'committing'
  for no key update of x
), prepared_post as (
  -- The post, back to preparing.
  update post p set phase = 'preparing', claim_until = now() + $4 * interval '1 millisecond'
  from locked_publication k where p.id = any (array[k.id])
  returning p.id, p.org_id
), timeline as (
  -- The reason, in the timeline of the post.
  insert into post_event (org_id, post_id, event, node, reason)
  select org_id, id, 'retried', $5, 'the credentials were refreshed' from prepared_post
)
update publication x set phase = 'preparing' from prepared_post p where x.id = $3 and x.post_id = any (array[p.id])
