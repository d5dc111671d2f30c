-- publishing.PauseRevoke
--
-- Revokes the claims that a pause reaches and whose call has not begun: without its token, the call is not made. It
-- runs in a transaction after the one that stored the pause and locked rows of channel_queue, because posts are locked
-- before those rows. If the pause is gone, nothing changes.
--
--   $1 scope text: publishing.PauseScope
--   $2 subject uuid: the organization, the customer or the channel; for a stop, the organization
--   $3 by text: who paused
--   $4 node_name text: name of the process in timelines
--
--   PREPARE revoke_paused_claims (text, uuid, text, text) AS
--   EXPLAIN EXECUTE revoke_paused_claims (null, null, null, null);
with claimed as (
  -- The posts of paused channels that are preparing, locked.
  select p.id from post p
  where p.channel_id in (
      select c.id from channel c
      where c.deleted_at is null
        and ($1 in ('organization', 'instance') or $1 = 'customer' and c.customer_id = $2
          or $1 = 'channel' and c.id = $2))
    and p.state = 'PUBLISHING' and p.phase = 'preparing' and p.deleted_at is null
    and exists (select from channel_queue q where q.channel_id = p.channel_id and q.paused)
  order by p.id for no key update of p
), returned as (
  -- The posts, back in the queue.
  update post p set state = 'QUEUE', phase = null, claim_token = null, claim_holder = null, claim_until = null,
    updated_at = now()
  from claimed c where p.id = c.id
  returning p.org_id, p.id
)
insert into post_event (org_id, post_id, event, by, node, reason)
select org_id, id, 'returned', $3, nullif($4, ''), 'publishing is paused' from returned
