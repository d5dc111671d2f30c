-- Where the calls of a publication went that may have arrived, * when they went to several servers: that another server
-- does not have the post proves nothing.
alter table publication add column sent_to text;

-- The sender stores it with the mark, so it reads where the access that it uses leads to.
create policy sender on channel_queue for select to crier_sender
  using (exists (select 1 from post p where p.org_id = channel_queue.org_id and p.channel_id = channel_queue.channel_id and p.state in ('PUBLISHING', 'UNKNOWN')));
grant select (org_id, channel_id, destination) on channel_queue to crier_sender;
