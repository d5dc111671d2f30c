-- Who there is: organizations, people, memberships, API keys, sessions.
create table organization (
  id          uuid primary key,
  name        text not null check (length(name) between 1 and 128),
  description text not null default '' check (length(description) <= 500),
  timezone    text not null default 'UTC',
  created_at  timestamptz not null default now()
);

-- People are global: one person may belong to several organizations.
create table person (
  id            uuid primary key,
  email         text not null check (email = lower(email) and length(email) between 3 and 254),
  name          text not null default '',
  password_hash text not null default '',
  activated     boolean not null default true,
  created_at    timestamptz not null default now(),
  constraint person_email_key unique (email)
);

create table member (
  org_id     uuid not null references organization (id) on delete cascade,
  person_id  uuid not null references person (id) on delete cascade,
  role       text not null check (role in ('SUPERADMIN', 'ADMIN', 'USER')),
  disabled   boolean not null default false,
  created_at timestamptz not null default now(),
  primary key (org_id, person_id)
);
create index member_person on member (person_id, created_at);

create table api_key (
  org_id     uuid not null references organization (id) on delete cascade,
  id         uuid not null,
  name       text not null check (length(name) between 1 and 64),
  prefix     text not null,
  hash       bytea not null check (length(hash) = 32),
  created_by uuid references person (id) on delete set null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  primary key (org_id, id),
  constraint api_key_hash_key unique (hash)
);

-- Sessions belong to a person, not to an organization: the organization is chosen per request.
create table session (
  id         uuid primary key,
  person_id  uuid not null references person (id) on delete cascade,
  hash       bytea not null check (length(hash) = 32),
  created_at timestamptz not null default now(),
  seen_at    timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint session_hash_key unique (hash)
);
create index session_person on session (person_id);

alter table organization enable row level security;
alter table organization force row level security;
alter table member enable row level security;
alter table member force row level security;
alter table api_key enable row level security;
alter table api_key force row level security;

create policy tenant on organization to crier_tenant
  using (id = (select nullif(current_setting('app.org_id', true), '')::uuid))
  with check (id = (select nullif(current_setting('app.org_id', true), '')::uuid));
create policy tenant on member to crier_tenant
  using (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))
  with check (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid));
create policy tenant on api_key to crier_tenant
  using (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))
  with check (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid));

grant select, insert, update on organization to crier_tenant;
grant select, insert, update, delete on member to crier_tenant;
grant select, insert, update, delete on api_key to crier_tenant;
grant references (id) on organization to crier_tenant;
grant select (id) on person to crier_tenant;

-- The gate finds whose a credential is, before any organization is known.
create policy gate on member for select to crier_gate using (true);
create policy gate on api_key for select to crier_gate using (true);
grant select (org_id, person_id, role, disabled, created_at) on member to crier_gate;
grant select (org_id, id, hash, created_by, expires_at) on api_key to crier_gate;
grant select, insert, update on person to crier_gate;
grant select, insert, update, delete on session to crier_gate;
