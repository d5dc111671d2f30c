-- The first is whole, so that the planner never reads it from end to end because all that it looks for has its condition; the second begins with the group so that nobody looks through an organization for a group.
drop index post_range;
create index post_range on post (org_id, publish_date);
drop index post_group;
create index post_group on post (group_id, org_id);

-- Every index is written by each claim and each end of a post. A part stays with its post, whose id is unique everywhere.
alter table publication drop constraint publication_once;
alter table publication add constraint publication_once primary key (post_id, part_id, number);
drop index publication_post;
