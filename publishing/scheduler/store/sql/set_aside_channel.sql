-- publishing.ChannelSetAside
--
-- Keeps the channel that follows another one in an organization from being claimed for a while, and adds the reason to
-- the timeline of its first post.
--
-- Result: the channel.
--
--   $1 org uuid: the organization
--   $2 after uuid: the channel before it, in the order of ids
--   $3 pause double precision: milliseconds for which it is left out
--   $4 node_name text: name of the process in timelines
--   $5 reason text: why, for people
--
--   PREPARE set_aside_channel (uuid, uuid, double precision, text, text) AS
--   EXPLAIN EXECUTE set_aside_channel (null, null, null, null, null);
with channel_set_aside as (
  -- The channel.
  update channel_queue q set not_before = now() + $3 * interval '1 millisecond'
  from (
    select c.channel_id from channel_queue c
    where c.org_id = $1 and c.channel_id > $2
    order by c.channel_id limit 1) n
  where q.channel_id = any (array[n.channel_id])
  returning q.org_id, q.channel_id
), timeline as (
  -- The reason, in the timeline of the first post of its queue.
  insert into post_event (org_id, post_id, event, node, reason)
  select a.org_id, h.id, 'set_aside', $4, $5
  from channel_set_aside a
  cross join lateral (
    select p.id from post p
    where p.channel_id = a.channel_id and p.state = 'QUEUE' and p.deleted_at is null
    order by p.due, p.seq limit 1) h
)
select channel_id from channel_set_aside
