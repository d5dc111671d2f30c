-- Every claim is preparing until its call is marked, whatever the platform.
alter table channel_queue drop column direct;
drop policy clock on attachment;
revoke select on attachment from crier_clock;
