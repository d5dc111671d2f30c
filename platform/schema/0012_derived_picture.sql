-- A smaller picture made of an image that a platform does not take as it is. It is made once for each image and
-- format, and belongs to the image. A row is written pending with the post that needs the picture; a process takes it
-- by counting an attempt, and only that attempt may end it. When an image is deleted its rows go with it. Its blobs do
-- not: whoever deletes images also deletes the blobs named by blob_key.
create table derived_picture (
  org_id       uuid not null,
  media_id     uuid not null,
  spec         text not null check (spec ~ '^[a-z0-9-]{1,64}$'), -- what is made, such as jpeg-1000000-2000
  shard        smallint not null check (shard between 0 and 255),
  state        text not null default 'pending' check (state in ('pending', 'ready', 'failed')),
  attempts     integer not null default 0,            -- how often it was taken; the number of the attempt is its fence
  unfinished   integer not null default 0,            -- attempts in a row whose end nobody wrote down, as when the process dies over a picture
  not_before   timestamptz not null default now(),    -- of a pending row: when it may be taken, again if an attempt is under way
  blob_key     text,
  content_type text,
  size         bigint check (size > 0),
  width        integer,
  height       integer,
  error        text,                                  -- a sentence for people: why it failed, or, while pending, why the last attempt did
  created_at   timestamptz not null default now(),
  made_at      timestamptz,
  primary key (org_id, media_id, spec),
  foreign key (org_id, media_id) references media (org_id, id) on delete cascade,
  constraint derived_picture_ready check ((state = 'ready') = (blob_key is not null and content_type is not null and size is not null and width is not null and height is not null and made_at is not null)),
  constraint derived_picture_failed check (state <> 'failed' or error is not null)
);
create index derived_picture_pending on derived_picture (shard, not_before) where state = 'pending';

alter table derived_picture enable row level security;
alter table derived_picture force row level security;
create policy tenant on derived_picture to crier_tenant
  using (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))
  with check (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid));
grant select, insert, update, delete on derived_picture to crier_tenant;

-- The clock finds what is pending across organizations, by ids alone.
create policy clock on derived_picture for select to crier_clock using (true);
grant select (org_id, media_id, spec, shard, state, not_before) on derived_picture to crier_clock;
