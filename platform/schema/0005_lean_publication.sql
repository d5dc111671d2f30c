-- The usual course of a publication stands in its own row, so that publishing writes no event rows for it. A null name means that the timeline has a row.
alter table publication
  add column claimed_at timestamptz, add column claimed_by text,
  add column marked_at timestamptz, add column marked_by text,
  add column sent_by text;

-- Every index is paid for by each post that goes out; these two said what others say.
alter table publication drop constraint publication_pkey;
alter table publication drop constraint publication_once;
alter table publication add constraint publication_once primary key (part_id, number);
alter table post_event drop constraint post_event_pkey;
drop index post_event_post;
alter table post_event add constraint post_event_pkey primary key (post_id, id);

-- "is true" keeps the planner from reading every claimed post for each that is asked for by its id; a channel is found by its claimed post all the same.
alter policy sender on post using ((state in ('PUBLISHING', 'UNKNOWN')) is true);
alter policy sender on channel using (exists (select 1 from post p where p.org_id = channel.org_id and p.channel_id = channel.id and p.state in ('PUBLISHING', 'UNKNOWN')));
