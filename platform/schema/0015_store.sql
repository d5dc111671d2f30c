-- Every claim is preparing until its call is marked, whatever the platform.
alter table channel_queue drop column direct;
drop policy clock on attachment;
revoke select on attachment from crier_clock;

-- Every step of a post is an event.
alter table publication drop column claimed_by, drop column marked_by, drop column sent_by;

-- Only for those who ask for shards: they imply "is not null", and a search for the head of a channel does not. After a
-- quiet time it would otherwise look through all that is due, once for each channel.
drop index post_due;
create index post_due on post (shard, due) where state = 'QUEUE' and deleted_at is null and shard is not null;
