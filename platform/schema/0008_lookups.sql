-- The scheduler finds things by their ids alone: an index that begins with the organization would tempt the planner to look through all that an organization has.
alter table attachment drop constraint attachment_org_id_part_id_fkey;
alter table part drop constraint part_pkey;
alter table part add primary key (id, org_id);
alter table part drop constraint part_org_id_post_id_position_key;
alter table part add constraint part_position_key unique (post_id, position, org_id);
alter table attachment drop constraint attachment_pkey;
alter table attachment add primary key (part_id, position, org_id);
alter table attachment drop constraint attachment_org_id_media_id_fkey;
alter table media drop constraint media_pkey;
alter table media add primary key (id, org_id);
alter table attachment add foreign key (org_id, media_id) references media (org_id, id);
alter table attachment add foreign key (org_id, part_id) references part (org_id, id) on delete cascade;
drop index attachment_media;
create index attachment_media on attachment (media_id, org_id);
drop index publication_group;
create index publication_group on publication (group_id, org_id);
-- Only for those who ask for a channel: that says "is not null", and a search over all channels does not.
drop index post_head;
create index post_head on post (channel_id, due, seq) where state = 'QUEUE' and deleted_at is null and channel_id is not null;

-- "x = any (array[y])" is the equality that the planner can only use to look x up: it then never reads all of a table for what a few claimed posts need.
alter policy sender on part using (exists (select 1 from post p where p.id = any (array[part.post_id]) and (p.org_id = part.org_id) is true));
alter policy sender on attachment using (exists (select 1 from part a where a.id = any (array[attachment.part_id]) and (a.org_id = attachment.org_id) is true));
alter policy sender on publication using (exists (select 1 from post p where p.group_id = any (array[publication.group_id]) and (p.org_id = publication.org_id) is true));
alter policy sender on media using (exists (select 1 from attachment a where a.media_id = any (array[media.id]) and (a.org_id = media.org_id) is true));
