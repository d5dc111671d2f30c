-- A platform that de-duplicates and needs no preparation for a text alone: its posts are claimed with their call already marked, which saves a statement for each.
alter table channel_queue add column direct boolean not null default false;
create policy clock on attachment for select to crier_clock using (true);
grant select (org_id, part_id) on attachment to crier_clock;
