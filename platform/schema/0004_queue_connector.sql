-- Each queue knows its platform, so that a claim can keep to what all channels of a platform share.
alter table channel_queue add column connector text;
alter table channel_queue no force row level security;
alter table channel no force row level security;
update channel_queue q set connector = c.connector from channel c where c.org_id = q.org_id and c.id = q.channel_id;
alter table channel force row level security;
alter table channel_queue force row level security;
alter table channel_queue alter column connector set not null;
