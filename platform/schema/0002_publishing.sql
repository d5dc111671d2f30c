-- What is published: channels, media, posts, and the publications that reached a platform.
create table customer (
  org_id     uuid not null references organization (id) on delete cascade,
  id         uuid not null,
  name       text not null check (length(name) between 1 and 128),
  created_at timestamptz not null default now(),
  primary key (org_id, id)
);

create table channel (
  org_id         uuid not null references organization (id) on delete cascade,
  id             uuid not null,
  connector      text not null,
  name           text not null,
  profile        text not null default '',
  picture        text not null default '',
  account_id     text not null,                       -- the platform's own id of the account
  account        jsonb not null default '{}',         -- what the connector wants to remember of it, nothing secret
  grade          text not null check (grade in ('A', 'B', 'C', 'D', 'E')),
  credential     bytea,                               -- sealed; null once disconnected
  customer_id    uuid,
  disabled       boolean not null default false,
  refresh_needed boolean not null default false,
  timezone       text not null default 'UTC',
  created_at     timestamptz not null default now(),
  updated_at     timestamptz not null default now(),
  deleted_at     timestamptz,
  primary key (org_id, id),
  unique (id),
  foreign key (org_id, customer_id) references customer (org_id, id),
  check (deleted_at is null or credential is null)
);
create unique index channel_account on channel (org_id, connector, account_id) where deleted_at is null;

-- One row a channel, locked by nobody but the scheduler: who publishes on it now, and when it may go on.
create table channel_queue (
  channel_id uuid primary key references channel (id) on delete cascade,
  org_id     uuid not null,
  shard      smallint not null check (shard between 0 and 255),
  busy_post  uuid,                                    -- the post that holds the channel: publishing, unknown or backing off
  not_before timestamptz,
  done_at    timestamptz,                             -- when the last hold ended
  held_until timestamptz,                             -- posts due before this moment were kept back by us
  parked     boolean not null default false,          -- needs reconnecting or is disabled
  paused     boolean not null default false
) with (fillfactor = 50);                             -- room for the claim and the end of a hold on the same page, past every index
create index channel_queue_org on channel_queue (org_id);

create table media (
  org_id        uuid not null references organization (id) on delete cascade,
  id            uuid not null,
  key           text not null check (length(key) >= 22),
  name          text not null,
  ext           text not null check (ext in ('png', 'jpg', 'jpeg', 'gif', 'mp4')),
  content_type  text not null,
  size          bigint not null check (size > 0),
  width         integer not null default 0,
  height        integer not null default 0,
  original_name text not null default '',
  created_at    timestamptz not null default now(),
  deleted_at    timestamptz,
  primary key (org_id, id),
  constraint media_key_key unique (key)
);

-- What people paused: everything, a group of channels or one channel. channel_queue.paused is what follows of it, so that the scheduler looks in one place.
create table pause (
  org_id  uuid not null references organization (id) on delete cascade,
  subject uuid not null,                              -- the organization, a customer or a channel
  scope   text not null check (scope in ('organization', 'customer', 'channel')),
  by      text not null,
  at      timestamptz not null default now(),
  primary key (org_id, subject)
);

-- A repeated post. Its occurrences are anchored to the schedule: the one with the number of the base is at the anchor's wall-clock time, one follows every so many days.
-- Only the next one is a row of post, written by the statement that ends the one before; others become rows when they are edited or skipped.
create table series (
  org_id      uuid not null references organization (id) on delete cascade,
  id          uuid not null,                          -- of occurrence 0; see occurrence_id
  channel_id  uuid not null,
  template    uuid not null,                          -- group of the hidden posts that occurrences are copied from
  anchor      timestamp not null,                     -- wall-clock time in the zone
  timezone    text not null,
  days        integer not null check (days between 1 and 365),
  base        integer not null default 0,
  until_at    timestamptz,
  times       integer check (times > 0),              -- occurrences in all, skipped ones too
  number      integer not null default 0,             -- of the next occurrence
  failures    integer not null default 0,             -- in a row
  stopped_at  timestamptz,
  stopped_for text check (stopped_for in ('ended', 'failed', 'deleted')),
  created_at  timestamptz not null default now(),
  primary key (org_id, id),
  foreign key (org_id, channel_id) references channel (org_id, id),
  constraint series_stopped check ((stopped_at is null) = (stopped_for is null))
);

create sequence post_seq;

-- A post is one channel's share of what was asked: a root with the parts that go out with it, or a run of later parts that waits for its predecessor.
create table post (
  org_id          uuid not null references organization (id) on delete cascade,
  id              uuid not null,
  group_id        uuid not null,
  channel_id      uuid not null,
  shard           smallint not null check (shard between 0 and 255),
  seq             bigint not null default nextval('post_seq'),
  state           text not null check (state in ('DRAFT', 'QUEUE', 'WAITING', 'PUBLISHING', 'UNKNOWN', 'PUBLISHED', 'ERROR')),
  due             timestamptz,                        -- written by people only; null while WAITING
  publish_date    timestamptz not null,               -- what the calendar shows
  after_post      uuid,                               -- the predecessor of a delayed run of parts
  delay_minutes   integer not null default 0 check (delay_minutes >= 0),
  revision        integer not null default 1,
  republish       integer not null default 1,         -- number of the current publication round
  settings        jsonb not null default '{}',
  creation_method text not null default 'API',
  not_before      timestamptz,                        -- written by the scheduler only
  attempt         integer not null default 0,
  failing_since   timestamptz,                        -- the first of the passing failures that it backs off from
  phase           text check (phase in ('preparing', 'committing')),
  claim_token     uuid,
  claim_epoch     bigint,
  claim_holder    uuid,
  claim_until     timestamptz,                        -- of an UNKNOWN post: when it is looked at next
  committing_at   timestamptz,
  call_ended      boolean not null default false,     -- the sender itself said that its call is over
  looks           integer not null default 0,
  release_id      text,
  release_url     text,
  published_at    timestamptz,
  error           text,
  error_code      text,
  outcome_unknown boolean not null default false,
  series_id       uuid,                               -- of the root of a repeated post
  occurrence      integer,
  interval_days   integer,
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  deleted_at      timestamptz,
  primary key (org_id, id),
  unique (id),
  foreign key (org_id, channel_id) references channel (org_id, id),
  foreign key (org_id, series_id) references series (org_id, id),
  constraint post_occurrence check ((series_id is null) = (occurrence is null) and (series_id is null) = (interval_days is null)),
  foreign key (org_id, after_post) references post (org_id, id),
  constraint post_due check ((due is null) = (state = 'WAITING') or state in ('ERROR', 'DRAFT')),
  constraint post_claim check ((state in ('PUBLISHING', 'UNKNOWN')) = (claim_token is not null and claim_until is not null and phase is not null and claim_holder is not null) or state in ('PUBLISHED', 'ERROR')),
  constraint post_unknown check (state <> 'UNKNOWN' or (phase = 'committing' and committing_at is not null)),
  constraint post_published check (state <> 'PUBLISHED' or (release_id is not null and published_at is not null and error is null)),
  constraint post_error check ((state = 'ERROR') = (error is not null)),
  constraint post_outcome check (not outcome_unknown or state = 'ERROR')
) with (fillfactor = 70);
create index post_range on post (org_id, publish_date) where deleted_at is null;
create index post_group on post (org_id, group_id);
create index post_series on post (org_id, series_id, occurrence) where series_id is not null;
create index post_after on post (org_id, after_post) where after_post is not null;
create index post_head on post (channel_id, due, seq) where state = 'QUEUE' and deleted_at is null;
create index post_due on post (shard, due) where state = 'QUEUE' and deleted_at is null;
create index post_waiting on post (shard, updated_at) where state = 'WAITING' and deleted_at is null;
create index post_claimed on post (shard, claim_until) where state in ('PUBLISHING', 'UNKNOWN');
-- The backstop: a channel never has two posts on their way.
create unique index post_one_per_channel on post (channel_id) where state in ('PUBLISHING', 'UNKNOWN');

create table part (
  org_id   uuid not null,
  id       uuid not null,
  post_id  uuid not null,
  position integer not null check (position >= 0),    -- within the group
  content  text not null default '',
  primary key (org_id, id),
  foreign key (org_id, post_id) references post (org_id, id) on delete cascade,
  unique (org_id, post_id, position)
);

create table attachment (
  org_id   uuid not null,
  part_id  uuid not null,
  position integer not null check (position >= 0),
  media_id uuid not null,
  alt      text not null default '',
  primary key (org_id, part_id, position),
  foreign key (org_id, part_id) references part (org_id, id) on delete cascade,
  foreign key (org_id, media_id) references media (org_id, id)
);
create index attachment_media on attachment (org_id, media_id);

-- A publication is one part sent once: its identity never changes however often it is tried.
create table publication (
  org_id      uuid not null,
  id          uuid not null default gen_random_uuid(),
  post_id     uuid not null,
  group_id    uuid not null,
  part_id     uuid not null,
  position    integer not null,
  number      integer not null default 1,             -- republish number
  created_at  timestamptz not null,                   -- frozen: what the platform is told
  revision    integer not null,
  phase       text not null default 'preparing' check (phase in ('preparing', 'committing', 'done', 'failed')),
  handle      jsonb,
  release_id  text,
  release_url text,
  ref         jsonb,
  done_at     timestamptz,
  primary key (org_id, id),
  foreign key (org_id, post_id) references post (org_id, id) on delete cascade,
  constraint publication_once unique (part_id, number),
  constraint publication_done check ((phase = 'done') = (release_id is not null and done_at is not null))
) with (fillfactor = 50);
create index publication_post on publication (post_id);
create index publication_group on publication (org_id, group_id);

create table post_event (
  org_id  uuid not null,
  id      bigint generated always as identity,
  post_id uuid not null,
  at      timestamptz not null default clock_timestamp(),
  event   text not null,
  node    text,
  by      text,
  reason  text,
  primary key (org_id, id),
  foreign key (org_id, post_id) references post (org_id, id) on delete cascade
);
create index post_event_post on post_event (post_id, id);

-- The first answer to a create, kept for its repeats; it outlives its posts.
create table idempotency (
  org_id       uuid not null references organization (id) on delete cascade,
  key          text not null check (length(key) between 1 and 255),
  request_hash bytea not null,
  status       smallint not null,
  body         jsonb not null,
  created_at   timestamptz not null default now(),
  primary key (org_id, key)
);

-- A connect that was begun and not yet finished.
create table connect_state (
  org_id     uuid not null references organization (id) on delete cascade,
  hash       bytea not null check (length(hash) = 32),
  connector  text not null,
  channel_id uuid,                                    -- set when an existing channel is refreshed
  person_id  uuid,
  secret     bytea,                                   -- sealed; what the connector keeps between its two steps
  onboarding boolean not null default false,
  return_url text not null default '',
  expires_at timestamptz not null,
  primary key (org_id, hash),
  constraint connect_state_hash_key unique (hash)
);

do $$
declare t text;
begin
  foreach t in array array['customer', 'channel', 'channel_queue', 'pause', 'media', 'series', 'post', 'part', 'attachment', 'publication', 'post_event', 'idempotency', 'connect_state'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format($p$create policy tenant on %I to crier_tenant
      using (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))
      with check (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))$p$, t);
    execute format('grant select, insert, update, delete on %I to crier_tenant', t);
  end loop;
end $$;
grant usage on sequence post_seq to crier_tenant;

-- The gate finds whose a file or a connect state is.
create policy gate on media for select to crier_gate using (deleted_at is null);
grant select (key, org_id, id, name, ext, content_type, size, deleted_at) on media to crier_gate;
create policy gate on connect_state for select to crier_gate using (true);
grant select (hash, org_id, expires_at) on connect_state to crier_gate;

-- The clock claims, finishes, sweeps and reaps across organizations and never reads content or credentials.
create policy clock on channel_queue to crier_clock using (true) with check (true);
grant select, update on channel_queue to crier_clock;
create policy clock on post to crier_clock using (true) with check (true);
grant select (org_id, id, group_id, channel_id, shard, seq, state, due, publish_date, after_post, delay_minutes, revision, republish, not_before, attempt, phase, claim_token,
              claim_epoch, claim_holder, claim_until, committing_at, call_ended, failing_since, looks, release_id, outcome_unknown, error_code, updated_at, deleted_at) on post to crier_clock;
grant update (state, due, publish_date, not_before, attempt, phase, claim_token, claim_epoch, claim_holder, claim_until, committing_at, call_ended, failing_since, looks, release_id, release_url, published_at,
              error, error_code, outcome_unknown, updated_at) on post to crier_clock;
create policy clock on part for select to crier_clock using (true);
grant select (org_id, id, post_id, position) on part to crier_clock;
create policy clock on publication to crier_clock using (true) with check (true);
grant select, insert, update on publication to crier_clock;
create policy clock on post_event for insert to crier_clock with check (true);
grant insert on post_event to crier_clock;
create policy clock on channel to crier_clock using (true) with check (true);
grant select (org_id, id, connector, grade, disabled, refresh_needed, deleted_at) on channel to crier_clock;
grant update (refresh_needed, updated_at) on channel to crier_clock;
create policy clock on organization for select to crier_clock using (true);
grant select (id) on organization to crier_clock;

-- The sender reads what a claimed post needs, and nothing else: every policy below leans on the first.
create policy sender on post for select to crier_sender using (state in ('PUBLISHING', 'UNKNOWN'));
grant select on post to crier_sender;
create policy sender on part for select to crier_sender
  using (exists (select 1 from post p where p.org_id = part.org_id and p.id = part.post_id));
grant select on part to crier_sender;
create policy sender on attachment for select to crier_sender
  using (exists (select 1 from part a where a.org_id = attachment.org_id and a.id = attachment.part_id));
grant select on attachment to crier_sender;
-- Of the whole group: a later run of parts answers the publications of the runs before it.
create policy sender on publication for select to crier_sender
  using (exists (select 1 from post p where p.org_id = publication.org_id and p.group_id = publication.group_id));
grant select on publication to crier_sender;
create policy sender on channel for select to crier_sender
  using (exists (select 1 from post p where p.org_id = channel.org_id and p.channel_id = channel.id));
grant select on channel to crier_sender;
create policy sender on media for select to crier_sender
  using (exists (select 1 from attachment a where a.org_id = media.org_id and a.media_id = media.id));
grant select on media to crier_sender;

-- The id of an occurrence, or of what belongs to it, is the first one's with the number in its last four bytes: a later occurrence has its id before it is a row.
create function occurrence_id(first uuid, number integer) returns uuid language sql immutable strict as
$$ select (left(first::text, 28) || lpad(to_hex((('x' || right(first::text, 8))::bit(32) # number::bit(32))::bigint), 8, '0'))::uuid $$;

-- The same wall-clock time on every day; a time that the clocks skip is as much later as they jump.
create function occurrence_at(anchor timestamp, zone text, days integer, nth integer) returns timestamptz language sql stable strict as
$$ select (anchor + nth * days * interval '1 day') at time zone zone $$;

-- Whether a series has an occurrence at a time.
create function occurs(until_at timestamptz, times integer, nth integer, at timestamptz) returns boolean language sql immutable as
$$ select (until_at is null or at <= until_at) and (times is null or nth < times) and at < '2201-01-01Z'::timestamptz $$;

create function write_occurrence(org uuid, series uuid, nth integer) returns timestamptz language plpgsql as $$
declare
  s record;
  due_at timestamptz;
begin
  select x.id, x.template, x.days, occurrence_at(x.anchor, x.timezone, x.days, nth - x.base) as due_at into strict s from series x where x.org_id = org and x.id = series;
  due_at := s.due_at;
  insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date, after_post, delay_minutes, settings, creation_method, series_id, occurrence, interval_days)
  select p.org_id, case when p.after_post is null then occurrence_id(s.id, nth) else occurrence_id(p.id, nth) end, occurrence_id(p.group_id, nth), p.channel_id, p.shard,
    case when p.after_post is null then 'QUEUE' else 'WAITING' end, case when p.after_post is null then due_at end, due_at,
    case when p.after_post is null then null when r.after_post is null then occurrence_id(s.id, nth) else occurrence_id(p.after_post, nth) end, p.delay_minutes, p.settings, p.creation_method,
    case when p.after_post is null then s.id end, case when p.after_post is null then nth end, case when p.after_post is null then s.days end
  from post p left join post r on r.org_id = p.org_id and r.id = p.after_post
  where p.org_id = org and p.group_id = s.template;
  insert into part (org_id, id, post_id, position, content)
  select a.org_id, case when a.id = p.id and p.after_post is null then occurrence_id(s.id, nth) else occurrence_id(a.id, nth) end,
    case when p.after_post is null then occurrence_id(s.id, nth) else occurrence_id(p.id, nth) end, a.position, a.content
  from post p join part a on a.org_id = p.org_id and a.post_id = p.id where p.org_id = org and p.group_id = s.template;
  insert into attachment (org_id, part_id, position, media_id, alt)
  select a.org_id, case when a.id = p.id and p.after_post is null then occurrence_id(s.id, nth) else occurrence_id(a.id, nth) end, t.position, t.media_id, t.alt
  from post p join part a on a.org_id = p.org_id and a.post_id = p.id join attachment t on t.org_id = a.org_id and t.part_id = a.id where p.org_id = org and p.group_id = s.template;
  insert into post_event (org_id, post_id, event, reason) values (org, occurrence_id(s.id, nth), 'written', 'repeated every ' || s.days || ' days');
  return due_at;
end $$;

-- Whatever ends an occurrence writes the next one, in the same statement: a publication, an error, a deletion. Occurrences whose time is past by then are left out.
-- The scheduler may not read what it copies, so this runs as the tenant, in the organization of the post and no other.
create function series_next() returns trigger language plpgsql security definer set search_path = public, pg_temp as $$
declare
  before text := current_setting('app.org_id', true);
  failed boolean;
  s record;
  n integer;
  due_at timestamptz;
  standing text;
begin
  perform set_config('app.org_id', new.org_id::text, true);
  failed := new.deleted_at is null and new.state = 'ERROR' and not (new.error_code is not distinct from 'missed'
    and exists (select 1 from channel_queue q where q.org_id = new.org_id and q.channel_id = new.channel_id and q.paused));
  update series x set
    failures = case when new.deleted_at is not null then x.failures when failed then x.failures + 1 when new.state = 'PUBLISHED' then 0 else x.failures end
  where x.org_id = new.org_id and x.id = new.series_id
  returning x.id, x.anchor, x.timezone, x.days, x.base, x.until_at, x.times, x.number, x.failures, x.stopped_at,
    exists (select 1 from channel c where c.org_id = x.org_id and c.id = x.channel_id and c.deleted_at is null) as connected into s;
  if s.stopped_at is null and s.number = new.occurrence then
    n := greatest(s.number, s.base);
    loop
      n := n + 1;
      due_at := occurrence_at(s.anchor, s.timezone, s.days, n - s.base);
      if failed and s.failures >= 2 then
        update series x set stopped_at = now(), stopped_for = 'failed' where x.org_id = new.org_id and x.id = s.id;
        insert into post_event (org_id, post_id, event, reason) values (new.org_id, new.id, 'stopped', 'two failures in a row: it is not repeated any more');
        exit;
      elsif not s.connected or not occurs(s.until_at, s.times, n - s.base, due_at) then
        update series x set stopped_at = now(), stopped_for = 'ended' where x.org_id = new.org_id and x.id = s.id;
        exit;
      end if;
      select case when p.deleted_at is not null then 'DELETED' else p.state end into standing from post p where p.org_id = new.org_id and p.id = occurrence_id(s.id, n);
      if not found and due_at > now() then
        perform write_occurrence(new.org_id, s.id, n);
        standing := 'QUEUE';
      end if;
      if standing not in ('DELETED', 'PUBLISHED', 'ERROR') then
        update series x set number = n where x.org_id = new.org_id and x.id = s.id;
        exit;
      end if;
    end loop;
  end if;
  perform set_config('app.org_id', coalesce(before, ''), true);
  return null;
end $$;
grant create on schema public to crier_tenant;
alter function series_next() owner to crier_tenant;
revoke create on schema public from crier_tenant;

create trigger post_series after update of state, deleted_at on post for each row
  when (new.series_id is not null and (new.deleted_at is not null and old.deleted_at is null or new.deleted_at is null and new.state in ('PUBLISHED', 'ERROR') and old.state <> new.state))
  execute function series_next();
