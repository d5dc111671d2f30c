-- Who runs: processes, and which of them schedules which shard of the organizations. No tenant data.
-- The lease is the node's: a shard is held while its owner's row has not expired, so that a beat writes one row.
create table node (
  id         uuid primary key,                        -- one per process start
  home       uuid not null,                           -- the data folder, which one process holds at a time
  address    text not null,
  roles      text[] not null,
  leaving    boolean not null default false,          -- it finishes what it has and takes nothing new
  started_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index node_home on node (home);

create table shard (
  shard smallint primary key check (shard between 0 and 255),
  owner uuid,
  epoch bigint not null default 0                     -- grows with every change of owner
);
insert into shard (shard) select generate_series(0, 255);

grant select, insert, update, delete on node to crier_clock;
grant select, update on shard to crier_clock;
