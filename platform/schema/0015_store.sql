-- Every claim is preparing until its call is marked, whatever the platform.
alter table channel_queue drop column direct;
drop policy clock on attachment;
revoke select on attachment from crier_clock;

-- Every step of a post is an event.
alter table publication drop column claimed_by, drop column marked_by, drop column sent_by;
