-- A shard is held by its owner while the owner's row in node has not expired; nothing else says so.
alter table shard drop column epoch;
drop index node_home;                                 -- a table of a few rows
