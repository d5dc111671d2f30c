-- Every index of these two is written by each claim and each end of a post. One that begins with the id serves the keys to it as well as the scheduler.
alter table part drop constraint part_org_id_post_id_fkey;
alter table publication drop constraint publication_org_id_post_id_fkey;
alter table post_event drop constraint post_event_org_id_post_id_fkey;
alter table post drop constraint post_org_id_after_post_fkey;
alter table post drop constraint post_pkey;
alter table post add primary key (id, org_id);
alter table post drop constraint post_id_key;
alter table post add foreign key (org_id, after_post) references post (org_id, id);
alter table part add foreign key (org_id, post_id) references post (org_id, id) on delete cascade;
alter table publication add foreign key (org_id, post_id) references post (org_id, id) on delete cascade;
alter table post_event add foreign key (org_id, post_id) references post (org_id, id) on delete cascade;
-- The first whole, so that the planner never reads it from end to end because all that it looks for has its condition; the second so that nobody looks through an organization for a group.
drop index post_range;
create index post_range on post (org_id, publish_date);
drop index post_group;
create index post_group on post (group_id, org_id);

-- A part stays with its post.
alter table publication drop constraint publication_once;
alter table publication add constraint publication_once primary key (post_id, part_id, number);
drop index publication_post;
