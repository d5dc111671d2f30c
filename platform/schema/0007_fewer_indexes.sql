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

-- A part stays with its post.
alter table publication drop constraint publication_once;
alter table publication add constraint publication_once primary key (post_id, part_id, number);
drop index publication_post;
