-- The baseline: the whole schema as of the first release. Every later change is a file with the next number; see
-- "Changing the schema" in CONTRIBUTING.md. A database that was created with other statements is refused.
--
-- Reading aids
--   Ids are UUIDv7, or derived from one. A text column with a list of values has a Go type with the same list.
--   "Due" is when a post is to be published. "shard" is the shard of the row's organization (tenancy.Shard); it is
--   stored so that a process can look for work in the shards that it schedules.
--   A comment on an index names the statements that use it; the name of a statement is its first line in the code. Keys
--   without a comment find a row by its id. A check of one column has Postgres' default name, <table>_<column>_check.
--   Every row of an organization has its org_id, and foreign keys between such rows include it.
--   The keys and indexes of part, attachment, media, publication and post_event begin with an id instead of org_id,
--   except those of media with "size > 0": the scheduler looks rows up by id across organizations, and an index that
--   begins with org_id would tempt the planner to read all rows of an organization.


-- Tenancy: organizations, people, and how they prove who they are -----------------------------------------------------

-- A tenant. Everything that belongs to it is deleted with it.
create table organization (
  id           uuid constraint organization_pkey primary key,
  name         text not null check (length(name) between 1 and 128),
  description  text not null default '' check (length(description) <= 500),
  -- IANA name or fixed offset; the default of new channels.
  timezone     text not null default 'UTC' check (length(timezone) <= 64),
  -- A person has chosen the time zone, perhaps UTC, so POST /user/setup keeps it.
  timezone_chosen boolean not null default false,
  -- While true, members without a second factor have no access.
  mfa_required boolean not null default false,
  -- When the operator of the instance suspended it: members and keys have no access, and nothing is published.
  suspended_at timestamptz,
  -- When its deletion was requested: nobody has access, and it is purged after DELETE_GRACE. An undo sets null.
  deleted_at   timestamptz,
  -- The person whose account deletion also deleted this organization; restoring the account
  -- restores both. Null: the organization was deleted alone.
  deleted_with uuid,
  -- What happens to posts that fell due before both of them were cleared: after a suspension they are published late
  -- (true), after a deletion they are missed (false).
  catch_up     boolean not null default true,
  created_at   timestamptz not null default now()
);
-- Organizations to be purged.
create index organization_deleted on organization (deleted_at) where deleted_at is not null;

-- A human being who may sign in. People are global: a person may belong to several organizations.
create table person (
  id             uuid constraint person_pkey primary key,
  -- PersonByEmail signs in by it.
  email          text not null constraint person_email_key unique
                 check (email = lower(email) and length(email) between 3 and 254),
  -- A hash that is the same for all verified addresses of one mailbox, by the rules of tenancy.Mailbox. Roles that may
  -- not see addresses count by it. For an unverified address, it is unique to the person.
  mailbox        uuid not null generated always as (md5(
                   case when not verified then id::text
                     when email ~ '@(gmail|googlemail)[.]com$'
                     then replace(coalesce(nullif(split_part(split_part(email, '@', 1), '+', 1), ''), split_part(email, '@', 1)), '.', '') || '@gmail.com'
                     else coalesce(nullif(split_part(split_part(email, '@', 1), '+', 1), ''), split_part(email, '@', 1)) || substr(email, strpos(email, '@'))
                   end)::uuid) stored,
  name           text not null default '' check (length(name) <= 128),
  bio            text not null default '' check (length(bio) <= 500),
  -- A file and its public address, from an organization that the person was a member of.
  picture_id     uuid,
  picture        text not null default '' check (length(picture) <= 1000),
  -- Argon2id in its encoded form; empty: no sign-in with a password.
  password_hash  text not null default '',
  -- True once a link sent to the address has been followed. An unverified address proves nothing.
  verified       boolean not null default false,
  -- May act as other people and list all organizations; set only by crier admin.
  instance_admin boolean not null default false,
  -- Which mails and notifications the person wants (tenancy.Notifications); absent members have their defaults.
  notifications  jsonb not null default '{}',
  -- When the deletion of the account was requested; it is purged after DELETE_GRACE.
  deleted_at     timestamptz,
  -- The number of sign-ins in the hour that began at sign_ins_since.
  sign_ins       integer not null default 0,
  sign_ins_since timestamptz not null default '-infinity',
  -- Mails with reports in the hour from reports_since, which may be in the future; see tenancy.GateTx.CountReport.
  -- Mails about published posts are counted separately, in digests.
  reports        integer not null default 0,
  reports_since  timestamptz not null default '-infinity',
  digests        integer not null default 0,
  digests_since  timestamptz not null default '-infinity',
  created_at     timestamptz not null default now()
);
-- People to be purged.
create index person_deleted on person (deleted_at) where deleted_at is not null;

-- Who created the organization. All organizations of one creator share that person's limits and,
-- while the creator is a member, fair shares; a new owner does not change the creator. Null: the
-- operator of the instance, or a person whose account is gone.
alter table organization add column created_by uuid references person (id) on delete set null;
-- CreatedOrganizations, and the purge of a person, which sets the column to null.
create index organization_created_by on organization (created_by, created_at desc) where created_by is not null;

-- A person's membership in an organization, with their role.
create table member (
  org_id     uuid not null references organization (id) on delete cascade,
  person_id  uuid not null references person (id) on delete cascade,
  role       text not null check (role in ('SUPERADMIN', 'ADMIN', 'USER')),
  disabled   boolean not null default false,
  created_at timestamptz not null default now(),
  constraint member_pkey primary key (org_id, person_id)
);
-- CreatedOrganizations: the accounts of one mailbox.
create index person_mailbox on person (mailbox);
-- SessionsByHash: the organizations of the signed-in person, the oldest membership first.
create index member_person on member (person_id, created_at);
-- An organization has one owner.
create unique index member_owner on member (org_id) where role = 'SUPERADMIN';

-- An invitation to join an organization: for the person who proves to own the address, or for anyone with a link.
create table invitation (
  org_id     uuid not null references organization (id) on delete cascade,
  id         uuid not null,
  -- Null: for anyone with a link.
  email      text check (email = lower(email) and length(email) between 3 and 254),
  role       text not null check (role in ('ADMIN', 'USER')),
  invited_by uuid references person (id) on delete set null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint invitation_pkey primary key (org_id, id)
);
-- Retention.
create index invitation_expires on invitation (expires_at, id);

-- A link of an invitation. The inviter's link and the mailed link differ. Using one of them deletes the invitation.
create table invitation_link (
  org_id        uuid not null,
  invitation_id uuid not null,
  -- SHA-256 of the token in the link. InvitationByHash looks the invitation up by it.
  hash          bytea not null constraint invitation_link_hash_key unique check (length(hash) = 32),
  constraint invitation_link_pkey primary key (org_id, invitation_id, hash),
  constraint invitation_link_invitation_fkey foreign key (org_id, invitation_id)
    references invitation (org_id, id) on delete cascade
);

-- A credential of the public API, which acts as its organization.
create table api_key (
  org_id     uuid not null references organization (id) on delete cascade,
  id         uuid not null,
  name       text not null check (length(name) between 1 and 64),
  -- The first characters of the key, so that people recognize it.
  prefix     text not null,
  -- SHA-256 of the key, which is not stored. KeysByHash looks the key up by it.
  hash       bytea not null constraint api_key_hash_key unique check (length(hash) = 32),
  created_by uuid references person (id) on delete set null,
  created_at timestamptz not null default now(),
  -- The last look-up, to the minute: a process looks a key up at most once a minute.
  used_at    timestamptz,
  -- The expiry that a person chose; null: the key does not expire. The code cannot read infinity.
  expires_at timestamptz check (isfinite(expires_at)),
  -- Set once another key has replaced this one: both keys work until then. Null: not replaced. The key
  -- ends at the earlier of the two times.
  overlap_until timestamptz check (isfinite(overlap_until)),
  -- It was created to replace another key.
  rotated    boolean not null default false,
  constraint api_key_pkey primary key (org_id, id)
);

-- A sign-in of a person. It has no organization: each request chooses one.
create table session (
  id         uuid constraint session_pkey primary key,
  person_id  uuid not null references person (id) on delete cascade,
  -- SHA-256 of the token in the cookie. SessionsByHash finds the session by it.
  hash       bytea not null constraint session_hash_key unique check (length(hash) = 32),
  created_at timestamptz not null default now(),
  -- The last request, to the minute: a session that has not been used for tenancy.SessionIdle has ended.
  seen_at    timestamptz not null default now(),
  expires_at timestamptz not null check (isfinite(expires_at)),
  -- Its sign-in proved the second factor, or the factor was enabled in this session.
  by_factor  boolean not null default false,
  -- Where it was created: the network address and the browser's User-Agent, shown in the person's list of sessions.
  address    text not null default '' check (length(address) <= 64),
  agent      text not null default '' check (length(agent) <= 256)
);
-- Retention.
create index session_expires on session (expires_at, id);
-- Deleting a person deletes the sessions.
create index session_person on session (person_id);

-- A browser in which a person has signed in, recognized by a cookie. Failed log-ins of others do not delay its log-ins.
create table device (
  -- SHA-256 of the token in the cookie.
  hash       bytea constraint device_pkey primary key check (length(hash) = 32),
  person_id  uuid not null references person (id) on delete cascade,
  seen_at    timestamptz not null default now(),
  expires_at timestamptz not null
);
create index device_person on device (person_id);
-- Retention.
create index device_expires on device (expires_at, encode(hash, 'hex'));

-- Something that happens once a link in a mail is followed. A registration has everything that it creates: two
-- registrations of one address are two rows, and each link completes its own.
create table confirmation (
  id            uuid constraint confirmation_pkey primary key,
  kind          text not null check (kind in ('registration', 'reset', 'address')),
  -- Where the link is sent; for a change of address, the new address.
  email         text not null check (email = lower(email) and length(email) between 3 and 254),
  -- Null for a registration.
  person_id     uuid references person (id) on delete cascade,
  name          text not null default '' check (length(name) <= 128),
  organization  text not null default '' check (length(organization) <= 128),
  password_hash text not null default '',
  -- SHA-256 of the invitation that the registration came with; null: none.
  invitation    bytea check (length(invitation) = 32),
  -- SHA-256 of the registering browser's cookie device; null: not a registration.
  device        bytea check (length(device) = 32),
  -- The identity at a provider that the registration came with; empty: none.
  provider      text not null default '',
  issuer        text not null default '',
  subject       text not null default '',
  created_at    timestamptz not null default now(),
  expires_at    timestamptz not null,
  constraint confirmation_person check ((kind = 'registration') = (person_id is null))
);
-- ConfirmationByEmail: the newest registration of an address.
create index confirmation_email on confirmation (email, created_at);
-- Deleting a person deletes the confirmations.
create index confirmation_person_id on confirmation (person_id);
-- Retention.
create index confirmation_expires on confirmation (expires_at, id);

-- A link of a confirmation, created when its mail was rendered. A change of address needs a link from each side.
create table confirmation_link (
  -- SHA-256 of the token in the link.
  hash            bytea constraint confirmation_link_pkey primary key check (length(hash) = 32),
  confirmation_id uuid not null references confirmation (id) on delete cascade,
  side            text not null check (side in ('old', 'new')),
  confirmed_at    timestamptz
);
create index confirmation_link_confirmation on confirmation_link (confirmation_id);

-- A second factor by time-based codes (RFC 6238).
create table mfa (
  person_id    uuid constraint mfa_pkey primary key references person (id) on delete cascade,
  -- Sealed with an encryption key that is not in the database.
  secret       bytea not null check (octet_length(secret) <= 1024),
  -- Null: begun but not confirmed, so the factor is not in effect.
  confirmed_at timestamptz,
  -- SHA-256 of the session or the sign-in that began the enrollment. If the same one begins again,
  -- it gets the same secret.
  begun_by     bytea not null check (length(begun_by) = 32),
  -- The time step of the last accepted code. Codes of this step and earlier ones are refused.
  last_step    bigint not null default 0,
  -- Codes tried since tries_since: wrong ones, and those still being checked.
  tries        integer not null default 0,
  tries_since  timestamptz not null default now()
);

-- A recovery code; using it deletes it.
create table recovery_code (
  person_id uuid not null references person (id) on delete cascade,
  -- SHA-256 of the code.
  hash      bytea not null check (length(hash) = 32),
  constraint recovery_code_pkey primary key (person_id, hash)
);

-- A sign-in that needs one more step; its token proves the earlier steps.
create table sign_in_step (
  -- SHA-256 of the token.
  hash       bytea constraint sign_in_step_pkey primary key check (length(hash) = 32),
  person_id  uuid not null references person (id) on delete cascade,
  purpose    text not null check (purpose in ('mfa', 'enroll', 'restore')),
  tries      integer not null default 0,
  expires_at timestamptz not null
);
create index sign_in_step_person on sign_in_step (person_id);
-- Retention.
create index sign_in_step_expires on sign_in_step (expires_at, encode(hash, 'hex'));

-- A session in which an administrator of the instance acts as a member.
create table impersonation (
  session_id uuid not null references session (id) on delete cascade,
  org_id     uuid not null,
  person_id  uuid not null,
  started_at timestamptz not null,
  constraint impersonation_pkey primary key (session_id, org_id, person_id),
  constraint impersonation_member foreign key (org_id, person_id) references member (org_id, person_id)
    on delete cascade
);
create index impersonation_member on impersonation (org_id, person_id);

-- An account of a person at an identity provider.
create table identity (
  id         uuid not null constraint identity_id_key unique,
  issuer     text not null check (length(issuer) <= 512),
  subject    text not null check (length(subject) <= 512),
  person_id  uuid not null references person (id) on delete cascade,
  provider   text not null check (provider in ('GITHUB', 'GOOGLE', 'GENERIC')),
  created_at timestamptz not null default now(),
  constraint identity_pkey primary key (issuer, subject)
);
create index identity_person on identity (person_id);

-- A sign-in with an identity provider that has begun but not finished; single use.
create table sign_in_state (
  -- SHA-256 of the state.
  hash         bytea constraint sign_in_state_pkey primary key check (length(hash) = 32),
  provider     text not null check (provider in ('GITHUB', 'GOOGLE', 'GENERIC')),
  -- The PKCE verifier, sealed.
  verifier     bytea not null check (octet_length(verifier) <= 1024),
  nonce        text not null check (length(nonce) <= 128),
  redirect_uri text not null check (length(redirect_uri) <= 1000),
  -- The person who is linking an identity; null: a sign-in.
  person_id    uuid references person (id) on delete cascade,
  expires_at   timestamptz not null
);
create index sign_in_state_person on sign_in_state (person_id);
-- Retention.
create index sign_in_state_expires on sign_in_state (expires_at, encode(hash, 'hex'));

-- What an identity provider said about a person without an account, for the registration that follows; single use.
create table identity_claim (
  -- SHA-256 of the token that the browser has.
  hash       bytea constraint identity_claim_pkey primary key check (length(hash) = 32),
  provider   text not null check (provider in ('GITHUB', 'GOOGLE', 'GENERIC')),
  issuer     text not null check (length(issuer) <= 512),
  subject    text not null check (length(subject) <= 512),
  email      text not null check (length(email) <= 254),
  name       text not null check (length(name) <= 128),
  -- Whether the provider has verified the address.
  verified   boolean not null,
  expires_at timestamptz not null
);
-- Retention.
create index identity_claim_expires on identity_claim (expires_at, encode(hash, 'hex'));

-- The id of a signed request that was accepted; another request with this id is refused.
create table used_request (
  id         text constraint used_request_pkey primary key check (length(id) <= 128),
  expires_at timestamptz not null
);
-- Retention.
create index used_request_expires on used_request (expires_at, (id || ''));

-- A mail to be sent. It is rendered when its task runs, which is also when a link and its token are created.
create table mail (
  id         uuid constraint mail_pkey primary key,
  kind       text not null check (length(kind) <= 64),
  -- The recipient; for the kind members, the id of the organization.
  email      text not null check (length(email) between 3 and 254),
  -- Values for the text, such as the name of an organization; nothing secret.
  data       jsonb not null default '{}',
  created_at timestamptz not null default now(),
  -- Until when its task waits for further reports to be added. Null: it does not wait.
  held_until timestamptz
);
-- Retention.
create index mail_created on mail (created_at, id);
-- MailCount.
create index mail_email on mail (email, kind, created_at);

-- What was done in an organization, and by whom. Nobody may change or delete a row; it is deleted with the
-- organization.
create table audit (
  org_id    uuid not null references organization (id) on delete cascade,
  id        uuid not null,
  at        timestamptz not null,
  -- Null: the operator of the instance, or the service itself.
  person_id uuid,
  -- Their name at the time: an address or the name of a key.
  actor     text not null check (length(actor) <= 320),
  via       text not null check (via in ('session', 'key', 'agent', 'instance', 'guest')),
  key_id    uuid,
  -- The instance administrator who acted as the person; empty: none.
  behind    text not null default '' check (length(behind) <= 320),
  action    text not null check (length(action) <= 64),
  -- What it was done to, as text for people.
  subject   text not null default '' check (length(subject) <= 320),
  address   text not null default '' check (length(address) <= 64),
  constraint audit_pkey primary key (org_id, id)
);
-- AuditList.
create index audit_at on audit (org_id, at, id);

-- What the operator did, and what was purged. Nobody may change or delete a row.
create table instance_event (
  id      uuid constraint instance_event_pkey primary key,
  at      timestamptz not null,
  actor   text not null check (length(actor) <= 320),
  action  text not null check (length(action) <= 64),
  subject text not null check (length(subject) <= 320)
);


-- OAuth: the agents that people let act for them ----------------------------------------------------------------------

-- A program that can ask people for access. Clients belong to no organization, except static ones.
create table oauth_client (
  id            uuid constraint oauth_client_pkey primary key,
  -- The id on the wire: ccl_..., or the https URL of the client's metadata document.
  client_id     text not null constraint oauth_client_client_id_key unique check (length(client_id) between 1 and 2048),
  kind          text not null check (kind in ('registered', 'document', 'static')),
  -- The organization of a static client.
  org_id        uuid references organization (id) on delete cascade,
  name          text not null check (length(name) <= 100),
  uri           text not null default '' check (length(uri) <= 2048),
  redirect_uris text[] not null check (cardinality(redirect_uris) between 1 and 10),
  auth_method   text not null check (auth_method in ('none', 'client_secret_basic', 'client_secret_post')),
  -- SHA-256 of the secret, which was shown once; null: a public client.
  secret_hash   bytea check (length(secret_hash) = 32),
  -- What the client may ask for.
  scopes        text[] not null,
  -- Static clients only: access tokens do not expire, for programs that cannot refresh them.
  long_lived    boolean not null default false,
  -- SHA-256 of the normalized metadata of a public client that registered: registering the same metadata again
  -- returns the same client.
  fingerprint   bytea constraint oauth_client_fingerprint_key unique check (length(fingerprint) = 32),
  -- The network that registered the client; empty for other kinds.
  source        text not null default '' check (length(source) <= 64),
  created_at    timestamptz not null,
  -- When the client last registered, had its document fetched, or was approved, to the hour.
  seen_at       timestamptz not null,
  -- When the first person approved the client; null: nobody has.
  approved_at   timestamptz,
  -- When the document was fetched.
  fetched_at    timestamptz,
  constraint oauth_client_org check ((kind = 'static') = (org_id is not null)),
  constraint oauth_client_secret check ((auth_method = 'none') = (secret_hash is null)),
  constraint oauth_client_fetched check ((kind = 'document') = (fetched_at is not null))
);
-- PruneClients.
create index oauth_client_unused on oauth_client (seen_at, id) where kind <> 'static';
-- RecentClients: how many clients a network has registered.
create index oauth_client_source on oauth_client (source, created_at) where kind = 'registered' and approved_at is null;
-- Deleting an organization deletes its static client.
create index oauth_client_org_id on oauth_client (org_id) where org_id is not null;

-- The static application of an organization, which an administrator set up. Its client is in oauth_client.
create table oauth_app (
  org_id      uuid not null references organization (id) on delete cascade,
  client      uuid not null constraint oauth_app_client_fkey references oauth_client (id) on delete cascade,
  description text not null default '' check (length(description) <= 500),
  picture     text not null default '' check (length(picture) <= 1000),
  created_by  uuid references person (id) on delete set null,
  created_at  timestamptz not null,
  constraint oauth_app_pkey primary key (org_id)
);
-- Deleting a client deletes the application.
create index oauth_app_client on oauth_app (client);
-- Deleting a person sets the column to null.
create index oauth_app_created_by on oauth_app (created_by) where created_by is not null;

-- A person's permission for a client to act for them in one organization.
create table oauth_grant (
  org_id        uuid not null references organization (id) on delete cascade,
  id            uuid not null,
  client        uuid not null constraint oauth_grant_client_fkey references oauth_client (id) on delete cascade,
  -- The client as the person saw it when they last approved it.
  client_id     text not null check (length(client_id) between 1 and 2048),
  client_kind   text not null check (client_kind in ('registered', 'document', 'static')),
  client_name   text not null check (length(client_name) <= 100),
  person_id     uuid not null,
  scopes        text[] not null,
  -- The client asked to write, and the person declined.
  write_declined boolean not null default false,
  -- Both empty: all channels. Otherwise these channels and the channels of these customers.
  channels      uuid[] not null default '{}' check (cardinality(channels) <= 1000),
  customers     uuid[] not null default '{}' check (cardinality(customers) <= 1000),
  -- The agent may only write drafts; a person must approve them.
  must_ask      boolean not null default false,
  -- How many posts the agent may queue a day; 0: any number.
  posts_per_day integer not null default 0 check (posts_per_day >= 0),
  ends_at       timestamptz check (isfinite(ends_at)),
  created_at    timestamptz not null,
  approved_at   timestamptz not null,
  -- The last request, to the minute.
  used_at       timestamptz,
  constraint oauth_grant_pkey primary key (org_id, id),
  -- Leaving the organization deletes a person's grants, so a later membership begins without any.
  constraint oauth_grant_member_fkey foreign key (org_id, person_id) references member (org_id, person_id)
    on delete cascade,
  constraint oauth_grant_once unique (org_id, client, person_id)
);
-- GrantOrg finds a grant by its id, before the organization is known.
create index oauth_grant_id on oauth_grant (id);
-- GrantsOfPerson, and deleting a membership deletes the grants.
create index oauth_grant_person on oauth_grant (person_id, org_id);
-- PruneClients, and deleting a client deletes the grants.
create index oauth_grant_client on oauth_grant (client);
-- Retention.
create index oauth_grant_approved on oauth_grant (approved_at, id);

-- How many posts an agent has queued on a day of the organization.
create table oauth_grant_day (
  org_id   uuid not null,
  grant_id uuid not null,
  day      date not null,
  posts    integer not null check (posts > 0),
  constraint oauth_grant_day_pkey primary key (org_id, grant_id, day),
  constraint oauth_grant_day_grant_fkey foreign key (org_id, grant_id) references oauth_grant (org_id, id)
    on delete cascade
);
-- Retention.
create index oauth_grant_day_day on oauth_grant_day (day);

-- The tokens issued from one code or device code. They are revoked together.
create table oauth_family (
  org_id     uuid not null,
  id         uuid not null,
  grant_id   uuid not null,
  scopes     text[] not null,
  -- The audience of the tokens.
  resource   text not null check (length(resource) <= 2048),
  created_at timestamptz not null,
  constraint oauth_family_pkey primary key (org_id, id),
  constraint oauth_family_grant_fkey foreign key (org_id, grant_id) references oauth_grant (org_id, id)
    on delete cascade
);
create index oauth_family_grant on oauth_family (org_id, grant_id);
-- Retention.
create index oauth_family_created on oauth_family (created_at, id);

-- An authorization code. It can be exchanged once, within a minute.
create table oauth_code (
  -- SHA-256 of the code. CodeOrg finds its organization.
  hash         bytea not null constraint oauth_code_hash_key unique check (length(hash) = 32),
  org_id       uuid not null,
  grant_id     uuid not null,
  client       uuid not null,
  redirect_uri text not null check (length(redirect_uri) <= 2048),
  -- The client sent the redirect URI with its request, so it must send it with the code too.
  sent         boolean not null,
  -- The S256 code challenge; empty: none.
  challenge    text not null check (length(challenge) <= 128),
  scopes       text[] not null,
  resource     text not null check (length(resource) <= 2048),
  -- SHA-256 of the consent page's token. It is unique, so that the page works once.
  request      bytea not null constraint oauth_code_request_key unique check (length(request) = 32),
  expires_at   timestamptz not null,
  -- The tokens that the code was exchanged for. The value remains after they have been revoked.
  family_id    uuid,
  constraint oauth_code_pkey primary key (org_id, hash),
  constraint oauth_code_grant_fkey foreign key (org_id, grant_id) references oauth_grant (org_id, id) on delete cascade
);
create index oauth_code_grant on oauth_code (org_id, grant_id);
-- Retention.
create index oauth_code_expires on oauth_code (expires_at);

-- An access token or a refresh token.
create table oauth_token (
  -- SHA-256 of the token. TokenOrg and TokensByHash find it.
  hash       bytea not null constraint oauth_token_hash_key unique check (length(hash) = 32),
  org_id     uuid not null,
  family_id  uuid not null,
  kind       text not null check (kind in ('access', 'refresh')),
  -- The refresh token that it was issued for; null: it was issued for a code.
  parent     bytea check (length(parent) = 32),
  created_at timestamptz not null,
  -- Null: it does not expire.
  expires_at timestamptz check (isfinite(expires_at)),
  -- Refresh tokens only: when it was first used.
  used_at    timestamptz,
  -- Its parent was used again, and other tokens replaced this one.
  voided     boolean not null default false,
  constraint oauth_token_pkey primary key (org_id, hash),
  constraint oauth_token_family_fkey foreign key (org_id, family_id) references oauth_family (org_id, id)
    on delete cascade
);
create index oauth_token_family on oauth_token (org_id, family_id);
-- Retention.
create index oauth_token_expires on oauth_token (expires_at);

-- A log-in on a device that has no browser. The person types the user code on the page /device.
create table device_code (
  -- SHA-256 of the code that the device polls with.
  hash       bytea constraint device_code_pkey primary key check (length(hash) = 32),
  -- SHA-256 of the code that the person types.
  user_hash  bytea not null constraint device_code_user_hash_key unique check (length(user_hash) = 32),
  client     uuid not null references oauth_client (id) on delete cascade,
  scopes     text[] not null,
  expires_at timestamptz not null,
  -- How many seconds the device must wait between polls.
  pause      integer not null check (pause between 1 and 3600),
  polled_at  timestamptz,
  -- Null: the person has not answered.
  decision   text check (decision in ('approved', 'denied')),
  -- The grant, once approved.
  org_id     uuid,
  grant_id   uuid,
  constraint device_code_grant_fkey foreign key (org_id, grant_id) references oauth_grant (org_id, id)
    on delete cascade,
  constraint device_code_approved check ((decision is not distinct from 'approved') = (grant_id is not null)
    and (org_id is null) = (grant_id is null))
);
create index device_code_client on device_code (client);
create index device_code_grant on device_code (org_id, grant_id);
-- Retention.
create index device_code_expires on device_code (expires_at);


-- Cluster: the running processes, and which of them schedules what; no tenant data ------------------------------------

-- A running process that schedules or serves.
create table node (
  -- New at each start of the process.
  id         uuid constraint node_pkey primary key,
  -- Identity of the data folder, which only one process at a time can lock.
  home       uuid not null,
  -- Where other processes reach it; empty: they cannot.
  address    text not null,
  roles      text[] not null,
  -- It finishes the work in progress and takes no new work.
  leaving    boolean not null default false,
  started_at timestamptz not null default now(),
  -- The end of the lease, which each heartbeat extends. It covers all shards of the process, so a heartbeat writes
  -- only one row.
  expires_at timestamptz not null
);

-- Which process schedules a shard. The rows are created once, below.
create table shard (
  shard smallint constraint shard_pkey primary key check (shard between 0 and 255),
  -- node.id; null: no owner. An owner whose lease has expired counts as none.
  owner uuid
);
insert into shard (shard) select generate_series(0, 255);


-- Channels: the accounts that posts go out to -------------------------------------------------------------------------

-- A group of channels, such as a client of an agency. The API calls it a group.
create table customer (
  org_id     uuid not null references organization (id) on delete cascade,
  id         uuid not null,
  name       text not null check (length(name) between 1 and 128),
  created_at timestamptz not null default now(),
  constraint customer_pkey primary key (org_id, id)
);

-- A connected account on a platform. Disconnecting sets deleted_at; the row stays for the posts that were published to
-- it.
create table channel (
  org_id         uuid not null references organization (id) on delete cascade,
  -- channel_queue refers to it without the organization.
  id             uuid not null constraint channel_id_key unique,
  -- Name of the connector, such as bluesky.
  connector      text not null,
  name           text not null,
  -- The account's handle on the platform.
  profile        text not null default '',
  -- URL of its picture; may be empty.
  picture        text not null default '',
  -- The platform's id of the account.
  account_id     text not null,
  -- What the connector stores about the account; nothing secret.
  account        jsonb not null default '{}',
  -- How certain we can be that the platform publishes a post only once: publishing.Grade.
  grade          text not null check (grade in ('A', 'B', 'C', 'D', 'E')),
  -- The access, sealed with an encryption key that is not in the database; null once disconnected. Every claim loads
  -- it. connector.maxCredential limits it before it is sealed; sealing adds 45 bytes.
  credential     bytea check (octet_length(credential) <= 32768),
  customer_id    uuid,
  disabled       boolean not null default false,
  -- The platform has refused the credential: nothing is published until the account is reconnected.
  refresh_needed boolean not null default false,
  -- The reason, as a sentence for people.
  refresh_problem text not null default '',
  -- Client id of the application that the account was connected with; empty for a platform with a form.
  app_id         text not null default '',
  -- When the credential is refreshed, before it expires; null if its expiry is not known.
  refresh_at     timestamptz,
  -- The only refresh that may run, and until when. A refresh that never ended leaves it set: the platform may have
  -- replaced the credential although the response was lost.
  refreshing     uuid,
  refreshing_until timestamptz,
  timezone       text not null default 'UTC',
  -- Its posting times by the clock of its time zone, as publishing.QueueTime: a list of objects with minute, counted
  -- from midnight, and days, the sum of 1 for Sunday, 2 for Monday and so on up to 64 for Saturday.
  queue_plan     jsonb not null default '[]' check (jsonb_typeof(queue_plan) = 'array' and jsonb_array_length(queue_plan) <= 100),
  created_at     timestamptz not null default now(),
  -- When its account was last connected, so that undoing one connect leaves a later connect alone.
  connected_at   timestamptz not null default now(),
  updated_at     timestamptz not null default now(),
  deleted_at     timestamptz,
  constraint channel_pkey primary key (org_id, id),
  constraint channel_org_id_customer_id_fkey foreign key (org_id, customer_id) references customer (org_id, id),
  constraint channel_check check (deleted_at is null or credential is null),
  constraint channel_refreshing check ((refreshing is null) = (refreshing_until is null)),
  -- The platform's server chooses these values, and connector.cleanAccount shortens them. Every list of posts repeats
  -- them.
  constraint channel_length check (octet_length(name) <= 512 and octet_length(profile) <= 512 and octet_length(picture) <= 2048
    and octet_length(account_id) <= 1024 and octet_length(account::text) <= 16384)
);
-- ChannelUpsert: an account has at most one channel in an organization, and reconnecting it keeps the channel.
create unique index channel_account on channel (org_id, connector, account_id) where deleted_at is null;
-- RefreshDue: channels whose credential expires soon.
create index channel_refresh on channel (refresh_at) where deleted_at is null and not refresh_needed;

-- A connect of an account that has begun but not finished.
create table connect_state (
  org_id     uuid not null references organization (id) on delete cascade,
  -- SHA-256 of the state in the browser. ConnectStateOwner finds its organization.
  hash       bytea not null constraint connect_state_hash_key unique check (length(hash) = 32),
  connector  text not null,
  -- The channel to reconnect; null for a new one.
  channel_id uuid,
  -- Who began it: a person, or an API key and the person who made the key; null if that person has
  -- left.
  person_id  uuid,
  key_id     uuid,
  -- Their address, or the name of the key, at that time; for the audit log.
  actor      text not null default '' check (length(actor) <= 320),
  -- The instance administrator who acted as the person, and their address; null and empty: none.
  behind_id  uuid,
  behind     text not null default '' check (length(behind) <= 320),
  -- The session that began it, with which it ends; null for a key.
  session_id uuid,
  onboarding boolean not null default false,
  return_url text not null default '',
  -- How often credentials were tried with it, which needs no session; ConnectStateTry ends it after too many.
  tries      int not null default 0,
  -- For a connect by OAuth: the sealed code verifier, and the client id of the application.
  sealed_verifier bytea,
  app_id     text not null default '',
  -- While the account is still to be chosen: the id that the channel will have, the accounts, and the sealed access.
  pending_id uuid,
  candidates jsonb,
  credential bytea check (octet_length(credential) <= 32768),
  -- While the account is still to be chosen: the requested time zone.
  timezone   text not null default '',
  -- Until when the account can be chosen with the state instead of a session; null: until expires_at.
  state_until timestamptz,
  -- Expired rows are deleted when another connect begins.
  expires_at timestamptz not null,
  constraint connect_state_pkey primary key (org_id, hash),
  constraint connect_state_pending_key unique (org_id, pending_id),
  constraint connect_state_pending check ((pending_id is null) = (candidates is null)
    and (pending_id is null) = (credential is null))
);
-- Retention. An expression, so that look-ups by key do not use this index.
create index connect_state_expires on connect_state (expires_at, encode(hash, 'hex'));

-- What people have paused, and the stop of an organization by the instance, which its members cannot undo.
-- channel_queue.paused is the result for each channel.
create table pause (
  org_id  uuid not null references organization (id) on delete cascade,
  -- Id of the organization, the customer or the channel, depending on scope; for a stop, of the organization.
  subject uuid not null,
  -- publishing.PauseScope; instance: a stop.
  scope   text not null check (scope in ('organization', 'customer', 'channel', 'instance')),
  by      text not null,
  at      timestamptz not null default now(),
  constraint pause_pkey primary key (org_id, subject, scope)
);


-- Media ---------------------------------------------------------------------------------------------------------------

-- An uploaded file. Its bytes are in the file store.
create table media (
  org_id        uuid not null references organization (id) on delete cascade,
  id            uuid not null,
  -- Unguessable, and part of the file's public address. MediaByKey looks the file up by it.
  key           text not null constraint media_key_key unique check (length(key) >= 22),
  -- Where its bytes are in the file store: the key of the first upload of the same bytes. Files of
  -- an organization with the same blob share the bytes, which are deleted with the last of these
  -- files.
  blob          text not null,
  name          text not null,
  ext           text not null check (ext in ('png', 'jpg', 'jpeg', 'gif', 'mp4')),
  content_type  text not null,
  -- Size in bytes of what is published.
  size          bigint not null check (size > 0),
  -- Size in bytes of the upload in the file store.
  stored        bigint not null check (stored > 0),
  -- What is replaced in its bytes when the file is published or served; null: nothing. See publishing/file/metadata.
  edits         bytea,
  -- Pixels; 0: not known.
  width         integer not null default 0,
  height        integer not null default 0,
  -- Length of a video; 0: not known.
  duration_ms   bigint not null default 0,
  -- The name under which it was uploaded.
  original_name text not null default '',
  -- The alternative text in posts that give none.
  alt_text      text not null default '',
  -- Hash of the bytes. An upload shares the blob of a file with the same hash.
  sha256        bytea check (octet_length(sha256) = 32),
  created_at    timestamptz not null default now(),
  -- From then on, its bytes may be gone. The row stays while a part refers to it.
  deleted_at    timestamptz,
  constraint media_pkey primary key (id, org_id)
);
-- MediaList: a page of the files of an organization. "size > 0", which is true for all files, keeps
-- other statements from using this index and the next one: a look-up of a few files would read all
-- of the organization's files.
create index media_org on media (org_id, id desc) where deleted_at is null and size > 0;
-- MediaStored, MediaInsert: how many bytes an organization has in the file store. The index contains
-- the sizes, so that they read no rows. MediaSharing, BlobsOfMedia: the files that share a blob.
create index media_blob on media (org_id, blob) include (stored) where deleted_at is null and size > 0;
-- MediaInsert: a file with the same bytes.
create index media_content on media (org_id, sha256) where deleted_at is null and sha256 is not null;
-- MediaForget: rows of deleted files.
create index media_deleted on media (org_id, id) where deleted_at is not null;

-- An address that accepts one file without any other credential. The organization's API key or access token that
-- requested the address must still work when the file arrives.
create table upload_address (
  org_id          uuid not null references organization (id) on delete cascade,
  -- SHA-256 of the token in the address. UploadAddressByHash finds its organization.
  hash            bytea not null constraint upload_address_hash_key unique check (length(hash) = 32),
  -- The kind of credential that requested the address, and SHA-256 of that API key or access token.
  via             text not null check (via in ('key', 'agent')),
  credential_hash bytea not null check (length(credential_hash) = 32),
  created_at      timestamptz not null,
  expires_at      timestamptz not null,
  -- The file that was uploaded. It remains here after the file has been deleted, so that the address
  -- never takes a second one.
  media_id        uuid,
  constraint upload_address_pkey primary key (org_id, hash)
);
-- UploadAddressInsert: how many addresses an organization has not used.
create index upload_address_unused on upload_address (org_id, expires_at) where media_id is null;
-- Retention. An expression, so that look-ups by key do not use this index.
create index upload_address_expires on upload_address (expires_at, encode(hash, 'hex'));

-- A smaller picture made from an image that a platform does not accept as it is: one for each image and format. It is
-- written as pending with the post that needs it. A process takes it by counting an attempt, and only that attempt may
-- finish it. Its row is deleted with the image, but its blob is not: whoever deletes images must also delete the blobs.
create table derived_picture (
  org_id       uuid not null,
  media_id     uuid not null,
  -- What is made, such as jpeg-1000000-2000.
  spec         text not null check (spec ~ '^[a-z0-9-]{1,64}$'),
  shard        smallint not null check (shard between 0 and 255),
  state        text not null default 'pending' check (state in ('pending', 'ready', 'failed')),
  -- How often it was taken. The number of an attempt is its fencing token.
  attempts     integer not null default 0,
  -- Consecutive attempts whose end was not stored, for example because the picture crashed the process.
  unfinished   integer not null default 0,
  -- When a pending picture may be taken: after the current attempt, or after the wait that the last attempt asked for.
  not_before   timestamptz not null default now(),
  -- Where its bytes are in the file store.
  blob_key     text,
  content_type text,
  size         bigint check (size > 0),
  width        integer,
  height       integer,
  -- A sentence for people: why it failed or, while it is pending, why the last attempt failed.
  error        text,
  created_at   timestamptz not null default now(),
  constraint derived_picture_pkey primary key (org_id, media_id, spec),
  constraint derived_picture_org_id_media_id_fkey foreign key (org_id, media_id)
    references media (org_id, id) on delete cascade,
  constraint derived_picture_ready check ((state = 'ready') = (blob_key is not null and content_type is not null
    and size is not null and width is not null and height is not null)),
  constraint derived_picture_failed check (state <> 'failed' or error is not null)
);
-- PicturePending: pictures that may be made now.
create index derived_picture_pending on derived_picture (shard, not_before) where state = 'pending';


-- Posts ---------------------------------------------------------------------------------------------------------------

-- A repeated post. Its occurrences are numbered and anchored to the schedule: the occurrence with the number base is at
-- the anchor's wall-clock time, and one follows every "days" days. Only the current occurrence has a row in post;
-- others get one when they are edited or skipped. The rules are in publishing.Series.
create table series (
  org_id      uuid not null references organization (id) on delete cascade,
  -- Id of the post of occurrence 0. The ids of the others are derived from it and their number: publishing.Occurrence.
  id          uuid not null,
  channel_id  uuid not null,
  -- Group of the hidden posts that occurrences are copied from.
  template    uuid not null,
  -- Wall-clock time in the zone.
  anchor      timestamp not null,
  timezone    text not null,
  days        integer not null check (days between 1 and 365),
  -- Number of the occurrence at the anchor.
  base        integer not null default 0,
  -- No occurrence is later than this; null: no limit.
  until_at    timestamptz,
  -- Total number of occurrences, including skipped ones; null: no limit.
  times       integer check (times > 0),
  -- Number of the current occurrence.
  number      integer not null default 0,
  -- How many consecutive occurrences before the current one have failed.
  failures    integer not null default 0,
  stopped_at  timestamptz,
  stopped_for text check (stopped_for in ('ended', 'failed', 'deleted')),
  created_at  timestamptz not null default now(),
  -- How often in a row the next occurrence could not be written, and when that is retried.
  retries     integer not null default 0,
  retry_at    timestamptz,
  constraint series_pkey primary key (org_id, id),
  constraint series_org_id_channel_id_fkey foreign key (org_id, channel_id) references channel (org_id, id),
  constraint series_stopped check ((stopped_at is null) = (stopped_for is null))
);
-- Retention: templates are stored as deleted posts; this shows whether one is in use.
create index series_template on series (template);

-- A label of posts; see post.tags.
create table tag (
  org_id     uuid not null references organization (id) on delete cascade,
  id         uuid not null,
  name       text not null check (length(name) between 1 and 64),
  color      text not null check (color ~ '^#[0-9a-f]{6}$'),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint tag_pkey primary key (org_id, id)
);
-- Names are unique, ignoring case. TagsByName finds the tags that a request names.
create unique index tag_name on tag (org_id, lower(name));

-- Orders posts of one channel that are due at the same moment.
create sequence post_seq;

-- A post for one channel: a root with the parts that are published with it, or a follower, whose first part has a delay
-- and which waits for its predecessor. The posts of a group were written together for one channel.
-- People write content and times; the scheduler writes claims and outcomes. The states are publishing.State.
create table post (
  org_id          uuid not null references organization (id) on delete cascade,
  -- The scheduler refers to it without the organization.
  id              uuid not null constraint post_id_key unique,
  group_id        uuid not null,
  channel_id      uuid not null,
  shard           smallint not null check (shard between 0 and 255),
  seq             bigint not null default nextval('post_seq'),
  state           text not null
                  check (state in ('DRAFT', 'QUEUE', 'WAITING', 'PUBLISHING', 'UNKNOWN', 'PUBLISHED', 'ERROR')),

  -- What people asked for.

  -- When it is to be published; null while it waits for its predecessor, which sets it when it ends. A retry never
  -- moves it.
  due             timestamptz,
  -- What the calendar shows.
  publish_date    timestamptz not null,
  -- The predecessor of a follower, and the delay after it. The first post of a group has no delay, and every follower
  -- has one; an edit that drops a follower keeps its delay.
  after_post      uuid,
  delay_minutes   integer not null default 0 check (delay_minutes >= 0),
  -- Counts edits: a claim that read an earlier revision skips the post.
  revision        integer not null default 1,
  -- Number of the publication round: moving a post by hand begins a new round, and the publications of earlier rounds
  -- stay as they ended.
  republish       integer not null default 1,
  -- The post's settings for the connector.
  settings        jsonb not null default '{}',
  -- How it was created: publishing.CreationMethod.
  creation_method text not null default 'API',
  -- Of a root: ids of rows of tag. Ids of deleted tags may remain and are ignored.
  tags            uuid[] not null default '{}' check (cardinality(tags) <= 100),
  -- SHA-256 of the approved content: the post is not published with any other content.
  -- Null: it needs no approval. Empty: its content has changed since, or it is an occurrence or the
  -- template of a series that nobody has approved; it is published only after a new approval.
  approved        bytea,

  -- The current claim and the results of earlier ones. Written only by the scheduler.

  -- Of a post that is retried: not before this.
  not_before      timestamptz,
  -- Number of claims in this round.
  attempt         integer not null default 0,
  -- The first of the consecutive temporary failures for which it backs off.
  failing_since   timestamptz,
  -- preparing: no irreversible call was made. committing: a call was about to be made, so the post may be published.
  phase           text check (phase in ('preparing', 'committing')),
  -- The claim token, new for each claim: every statement of the sender checks it.
  claim_token     uuid,
  -- Number of the claim's statement, chosen by the process that sent it, to find claims whose response was lost.
  claim_round     bigint,
  -- node.id of the process that has the claim.
  claim_holder    uuid,
  -- When the claim ends unless it is renewed; of an UNKNOWN post: when the platform is asked next.
  claim_until     timestamptz,
  -- When the last call was about to be made.
  committing_at   timestamptz,
  -- The sender itself reported that its call has ended.
  call_ended      boolean not null default false,
  -- How often the platform was asked for the outcome.
  looks           integer not null default 0,
  -- A call of this round may have reached the platform, and nothing proves the opposite. Set by an unknown outcome and
  -- cleared by a success or a proof; publication.maybe_sent is the same for each part.
  maybe_sent      boolean not null default false,
  -- Of a follower: when it would have been due if everything before it had been on time. Part of the identity of its
  -- publications.
  nominal_due     timestamptz,
  -- Consecutive claims that ended because their process died.
  reaps           integer not null default 0,

  -- How it ended.

  -- The id and the address of the first part on the platform.
  release_id      text,
  release_url     text,
  -- A sentence for people and a code for programs.
  error           text,
  error_code      text,
  -- Of an ERROR: the post may have been published.
  outcome_unknown boolean not null default false,

  -- Of the root of a repeated post.

  series_id       uuid,
  occurrence      integer,
  -- Days between occurrences.
  interval_days   integer,
  -- The series has moved past this occurrence. Only a hint for post_series_ended; series.number decides.
  series_passed   boolean not null default false,

  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  deleted_at      timestamptz,

  constraint post_pkey primary key (org_id, id),
  constraint post_org_id_channel_id_fkey foreign key (org_id, channel_id) references channel (org_id, id),
  constraint post_org_id_series_id_fkey foreign key (org_id, series_id) references series (org_id, id),
  constraint post_org_id_after_post_fkey foreign key (org_id, after_post) references post (org_id, id),
  constraint post_due check ((due is null) = (state = 'WAITING') or state in ('ERROR', 'DRAFT')),
  constraint post_claim check ((state in ('PUBLISHING', 'UNKNOWN')) = (claim_token is not null
    and claim_until is not null and phase is not null and claim_holder is not null) or state in ('PUBLISHED', 'ERROR')),
  constraint post_unknown check (state <> 'UNKNOWN' or (phase = 'committing' and committing_at is not null)),
  constraint post_unknown_sent check (state <> 'UNKNOWN' or maybe_sent),
  constraint post_published check (state <> 'PUBLISHED'
    or (release_id is not null and error is null)),
  constraint post_error check ((state = 'ERROR') = (error is not null)),
  constraint post_outcome check (not outcome_unknown or state = 'ERROR'),
  -- Backs up every statement: a post that may have been published is never reported as certainly failed.
  constraint post_maybe_sent check (state <> 'ERROR' or maybe_sent = outcome_unknown),
  constraint post_occurrence check ((series_id is null) = (occurrence is null)
    and (series_id is null) = (interval_days is null))
) with (fillfactor = 70); -- room for the next versions of a row on its page, so that updates need not change indexes

-- RootsInRange and RootsPage: the calendar and the list. ChannelTaken and AllTaken: what occupies a slot; the index
-- contains the channel, so that posts of other channels are skipped without reading their rows. It has no condition, so
-- that the planner never scans all of it because a query implies the condition.
create index post_range on post (org_id, publish_date, channel_id);
-- MonthPosts: first posts that are due after their date.
create index post_late on post (org_id, due) where due > publish_date and delay_minutes = 0;
-- GroupLock, and everything that reads whole groups.
create index post_group on post (group_id, org_id);
-- The occurrences of a series. A number has only one row, whoever writes it. The index includes the channel, which the
-- policy for narrowed transactions reads, so that the numbers can still be read from the index alone.
create unique index post_series on post (org_id, series_id, occurrence) include (channel_id) where series_id is not null;
-- SeriesEnded. Its condition is on occurrence, which is set whenever series_id is: the planner then cannot use
-- post_series for its queries, which would read all of that index.
create index post_series_ended on post (shard, updated_at)
  where occurrence is not null and not series_passed and (deleted_at is not null or state in ('PUBLISHED', 'ERROR'));
-- Finish: the follower of a published post. Partial, because most posts have none.
create index post_after on post (after_post, org_id) where after_post is not null;
-- Claim: the first post of a channel's queue. "channel_id is not null" keeps searches over all channels from using it.
create index post_head on post (channel_id, due, seq)
  where state = 'QUEUE' and deleted_at is null and channel_id is not null;
-- Sweep, FindExpire and CountQueue: what is due in the shards of a process. "shard is not null" keeps the search for a
-- channel's first post from using it: after a quiet time it would read everything that is due, once for each channel.
create index post_due on post (shard, due)
  where state = 'QUEUE' and deleted_at is null and shard is not null;
-- FindOrphans: followers whose time has come, because a follower cannot be left behind earlier. An expression, so that
-- the planner does not use the index of the calendar, which it would read whole.
create index post_waiting on post (shard, (publish_date at time zone 'UTC'))
  where state = 'WAITING' and deleted_at is null;
-- Retention: deleted groups, by their first posts. It leaves out existing posts, which may have many followers that
-- edits dropped.
create index post_deleted on post (deleted_at, id) where deleted_at is not null and delay_minutes = 0;
-- FindReap, FindStuck, FindUnknown and GiveBack: claims and unknown outcomes. Here and in the next index, "is not null"
-- keeps queries for a single post from using it, which would read all of it.
create index post_claimed on post (shard, claim_until)
  where state in ('PUBLISHING', 'UNKNOWN') and shard is not null;
-- The scheduler's last line of defense: a channel never has two posts in progress. HoldRepair and the sender's policies
-- use it too.
create unique index post_one_per_channel on post (channel_id)
  where state in ('PUBLISHING', 'UNKNOWN') and channel_id is not null;

-- A piece of a post: the main text, a part of a thread or a comment.
create table part (
  org_id   uuid not null,
  -- The first part of a group has the id of its post.
  id       uuid not null,
  post_id  uuid not null,
  -- Counted across the whole group.
  position integer not null check (position >= 0),
  content  text not null default '',
  -- Whether content is sanitized HTML of the supported subset; otherwise it is plain text.
  html     boolean not null default false,
  constraint part_pkey primary key (id, org_id),
  constraint part_org_id_post_id_fkey foreign key (org_id, post_id) references post (org_id, id) on delete cascade,
  -- The parts of a post, for everything that reads or sends posts.
  constraint part_position_key unique (post_id, position, org_id)
);

-- A media file of a part.
create table attachment (
  org_id   uuid not null,
  part_id  uuid not null,
  position integer not null check (position >= 0),
  media_id uuid not null,
  alt      text not null default '',
  constraint attachment_pkey primary key (part_id, position, org_id),
  constraint attachment_org_id_part_id_fkey foreign key (org_id, part_id)
    references part (org_id, id) on delete cascade,
  constraint attachment_org_id_media_id_fkey foreign key (org_id, media_id) references media (org_id, id)
);
-- The sender's policy on media: does a claimed post have the file?
create index attachment_media on attachment (media_id, org_id);


-- Publications: sends of parts ----------------------------------------------------------------------------------------

-- One send of one part. The claim writes it before any call is made, and its identity never changes, however often it
-- is retried; moving the post by hand begins a new round with new publications.
create table publication (
  org_id             uuid not null,
  -- The claim derives it from post, part, round and due time, so that the same send keeps its identity after a restore
  -- that lost the claim. Platforms that deduplicate get it as their key.
  id                 uuid not null,
  post_id            uuid not null,
  group_id           uuid not null,
  part_id            uuid not null,
  position           integer not null,
  -- post.republish: the round.
  number             integer not null default 1,
  -- The time of the post as sent to the platform: its due time, frozen.
  created_at         timestamptz not null,
  phase              text not null default 'preparing' check (phase in ('preparing', 'committing', 'done', 'failed')),
  -- What the connector has prepared so far, for the next step or the next process.
  handle             jsonb,
  -- A call for it may have reached the platform, and nothing proves the opposite.
  maybe_sent         boolean not null default false,
  -- Host of the calls that may have arrived, or * for several: that another host does not have it proves nothing.
  sent_to            text,

  -- How it ended: the platform's id, the address, and what the next parts reply to.

  release_id         text,
  release_url        text,
  ref                jsonb,
  done_at            timestamptz,
  -- A second success of the same publication, which raises an alarm.
  second_release_id  text,

  -- When it was first claimed, and when its first call was about to be made: a platform is searched from there.
  claimed_at         timestamptz,
  marked_at          timestamptz,

  constraint publication_once primary key (post_id, part_id, number),
  constraint publication_org_id_post_id_fkey foreign key (org_id, post_id)
    references post (org_id, id) on delete cascade,
  constraint publication_done check ((phase = 'done') = (release_id is not null and done_at is not null))
) with (fillfactor = 38); -- a finished row is half as long again as a new one, and must fit on the page beside it
-- WorkPublications and the sender's policy: what has been published of a group.
create index publication_group on publication (group_id, org_id);


-- Queue ---------------------------------------------------------------------------------------------------------------

-- The state of one channel's queue: what is in progress, and when it continues. One row for each channel, written by
-- the scheduler and, for pauses and connects, by the service.
create table channel_queue (
  channel_id  uuid constraint channel_queue_pkey primary key references channel (id) on delete cascade,
  org_id      uuid not null,
  shard       smallint not null check (shard between 0 and 255),
  -- channel.connector, so that a claim can respect the limits that all channels of a platform share.
  connector   text not null,
  -- Host of the calls, so that a hanging server occupies only a part of all calls. Written when connecting.
  destination text not null default '' check (length(destination) <= 255),
  -- The post that occupies the channel: claimed, with an unknown outcome, or backing off. No other post of the channel
  -- is published meanwhile.
  busy_post   uuid,
  -- Nothing of the channel is claimed before this.
  not_before  timestamptz,
  -- When busy_post last ended.
  done_at     timestamptz,
  -- Posts due before this were held back by us, so they are published with gaps instead of all at once.
  held_until  timestamptz,
  -- The credential was refused: nothing is published until the account is reconnected.
  parked      boolean not null default false,
  -- A row of pause applies to the channel.
  paused      boolean not null default false,
  -- Until when the channel was last held back: by a pause, by a refused credential, or because what its post needs
  -- could not be read. A missed post that was due before is not a failure, and no time before counts as failing.
  resumed_at  timestamptz
) with (fillfactor = 50); -- room for the claim and its end on the same page, so that no index changes
-- Claim and HeadCount read an organization's channels in this order, window by window.
-- "org_id is not null" keeps look-ups of one channel from using it, which would read all of it.
create index channel_queue_org on channel_queue (org_id, channel_id) where org_id is not null;
-- SweepChannels: the channels of a process. The condition keeps everything else from using it.
create index channel_queue_shard on channel_queue (shard) where shard is not null;


-- Events --------------------------------------------------------------------------------------------------------------

-- The timeline of posts: what people did, and every step of publishing.
create table post_event (
  org_id  uuid not null,
  id      bigint generated always as identity,
  post_id uuid not null,
  at      timestamptz not null default clock_timestamp(),
  event   text not null check (event in ('written', 'edited', 'moved', 'scheduled', 'unscheduled', 'claimed', 'sent',
                  'confirmed', 'retried', 'failed', 'returned', 'unknown', 'looked', 'published_twice', 'set_aside', 'delayed',
                  'stopped', 'released', 'approval_requested', 'approved', 'rejected', 'approval_expired', 'approval_void')),
  -- Host name of the process.
  node    text,
  -- Who did it, if it was a person.
  by      text,
  -- The reason, for people.
  reason  text,
  constraint post_event_pkey primary key (post_id, id),
  constraint post_event_org_id_post_id_fkey foreign key (org_id, post_id)
    references post (org_id, id) on delete cascade
);
-- Retention. An expression, so that look-ups by key do not use this index.
create index post_event_at on post_event (at, (id + 0));


-- Idempotency ---------------------------------------------------------------------------------------------------------

-- The response to a create with an Idempotency-Key, for its repeats. It outlives the posts.
create table idempotency (
  org_id       uuid not null references organization (id) on delete cascade,
  key          text not null check (length(key) between 1 and 255),
  -- SHA-256 of the request: a repeat with a different request is refused.
  request_hash bytea not null,
  -- Post and channel of each post that was created.
  body         jsonb not null,
  created_at   timestamptz not null default now(),
  constraint idempotency_pkey primary key (org_id, key)
);
-- Retention. An expression, so that look-ups by key do not use this index.
create index idempotency_created on idempotency (created_at, (key || ''));


-- Slots ---------------------------------------------------------------------------------------------------------------

-- A slot that a call returned a moment ago, so that no other call returns it too. A post at that time deletes it. It
-- never causes a refusal, and expired rows are deleted when another slot is held.
create table slot_hold (
  org_id     uuid not null references organization (id) on delete cascade,
  -- Id of the channel, or of the organization if the time is held for all of its channels.
  subject    uuid not null,
  -- A whole minute.
  at         timestamptz not null,
  expires_at timestamptz not null,
  constraint slot_hold_pkey primary key (org_id, subject, at)
);

-- Webhooks: endpoints of organizations that receive events about posts -----------------------------------------------

-- An endpoint. The scheduling columns show which endpoints have something to send, so that nothing needs to read their
-- deliveries to find out.
create table webhook (
  org_id         uuid not null references organization (id) on delete cascade,
  id             uuid not null,
  name           text not null check (length(name) between 1 and 128),
  url            text not null check (octet_length(url) between 1 and 2048),
  -- Who created it; null if that account is gone.
  created_by     uuid references person (id) on delete set null,
  -- People who chose its URL or a secret, and so may be able to read what is sent to it.
  known_to       uuid[] not null default '{}',
  -- Which events it wants, and for which channels; empty: all.
  events         text[] not null default '{}',
  integrations   uuid[] not null default '{}',
  -- The signing secret, sealed with an encryption key that is not in the database. webhook_old_key
  -- has the earlier secrets.
  signing_key    bytea not null check (octet_length(signing_key) <= 1024),
  created_at     timestamptz not null,
  updated_at     timestamptz not null,
  -- From then on it gets no events: a person disabled it, it returned 410, or all deliveries failed for days.
  disabled_at    timestamptz,
  disabled_for   text check (disabled_for in ('person', 'gone', 'failing')),
  -- The first failure since its last success.
  failing_since  timestamptz,
  -- The endpoint is served by separate workers, apart from endpoints that work: until a call to its
  -- URL has succeeded, after a failed call, and until slow_until after a slow call. The next success
  -- ends this.
  aside          boolean not null default true,
  slow_until     timestamptz,
  -- It asked for a pause until then, with 429 or 503.
  not_before     timestamptz,
  -- Number of its last delivery.
  last_number    bigint not null default 0,
  -- When its first pending delivery may be sent; null: it has none.
  next_at        timestamptz,
  -- A task that sends its deliveries is queued, or runs, until then at most. After that its process is presumed dead.
  queued_until   timestamptz,
  running_until  timestamptz,
  constraint webhook_pkey primary key (org_id, id),
  constraint webhook_disabled check ((disabled_at is null) = (disabled_for is null))
);
-- WebhookDue: the endpoints that are due, the longest overdue first; those of one organization; and
-- those being called.
create index webhook_next on webhook (aside, next_at) where next_at is not null;
create index webhook_turn on webhook (org_id, aside, next_at) where next_at is not null;
create index webhook_under_way on webhook (org_id) where queued_until is not null or running_until is not null;

-- An earlier secret of an endpoint, which signs in addition to the current one until ends_at.
create table webhook_old_key (
  org_id     uuid not null references organization (id) on delete cascade,
  id         uuid not null,
  webhook_id uuid not null,
  -- Sealed like webhook.signing_key.
  key        bytea not null check (octet_length(key) <= 1024),
  ends_at    timestamptz not null,
  constraint webhook_old_key_pkey primary key (org_id, id),
  constraint webhook_old_key_webhook_fkey foreign key (org_id, webhook_id)
    references webhook (org_id, id) on delete cascade
);
create index webhook_old_key_webhook on webhook_old_key (org_id, webhook_id, ends_at);
-- Retention. An expression, as in webhook_delivery_created.
create index webhook_old_key_ends on webhook_old_key (ends_at, (id::text));

-- Events for endpoints, written in the transaction in which they happened and deleted in the transaction that writes
-- the deliveries. Organizations without an enabled endpoint have none.
create table webhook_event (
  org_id      uuid not null references organization (id) on delete cascade,
  id          bigint generated always as identity,
  at          timestamptz not null default clock_timestamp(),
  event       text not null check (event in ('post.published', 'post.failed', 'post.status_changed',
                      'approval.requested', 'approval.resolved')),
  -- The first post of the thread.
  post_id     uuid not null,
  -- The state of the thread at that time, as clients see it; null: its state when the deliveries are written.
  state       text check (state in ('DRAFT', 'QUEUE', 'PUBLISHED', 'ERROR')),
  release_id  text,
  release_url text,
  error       text,
  error_code  text,
  -- Additional members of the body; null: none.
  data        jsonb,
  constraint webhook_event_pkey primary key (org_id, id)
);

-- The delivery of one event to one endpoint. Its id is the same in all attempts.
create table webhook_delivery (
  org_id     uuid not null references organization (id) on delete cascade,
  id         uuid not null,
  webhook_id uuid not null,
  -- Counts the deliveries of the endpoint.
  number     bigint not null,
  event      text not null check (length(event) <= 64),
  post_id    uuid,
  -- The body that is sent, with the same bytes in each attempt.
  body       text not null check (octet_length(body) <= 20000),
  state      text not null default 'pending' check (state in ('pending', 'delivered', 'failed')),
  -- Calls so far, and how many of them came before the last manual replay, from which the retry schedule counts.
  attempts   integer not null default 0,
  planned_from integer not null default 0,
  -- When it may be sent.
  next_at    timestamptz,
  -- The last attempts: publishing.WebhookAttempt.
  log        jsonb not null default '[]',
  -- Why it failed, for people, if that is more than the last attempt says.
  error      text,
  created_at timestamptz not null,
  ended_at   timestamptz,
  constraint webhook_delivery_pkey primary key (org_id, id),
  -- The log of an endpoint, and its limits.
  constraint webhook_delivery_number_key unique (org_id, webhook_id, number),
  constraint webhook_delivery_webhook_fkey foreign key (org_id, webhook_id)
    references webhook (org_id, id) on delete cascade,
  constraint webhook_delivery_pending check ((state = 'pending') = (next_at is not null)
    and (state = 'pending') = (ended_at is null))
);
-- DeliveriesDue.
create index webhook_delivery_due on webhook_delivery (org_id, webhook_id, next_at) where state = 'pending';
-- Retention. An expression, so that look-ups by key do not use this index.
create index webhook_delivery_created on webhook_delivery (created_at, (id::text));

-- About fifteen statements of the scheduler and of people change the state that clients see, more will follow, and none
-- of them may forget the event. So a trigger writes it, only for rows whose visible state changes: a claim, a retry or
-- an unknown outcome does not run it.
--
-- The state of a thread is that of publishing.Thread.Effective: the state of its first post unless that is published,
-- else of a failed follower, else of a follower that is not published, else PUBLISHED. A change of it writes an event.
create function webhook_record() returns trigger language plpgsql as $$
declare
  thread_id   uuid;
  root_state  text;
  shown       text;
  was         text := case when old.state in ('WAITING', 'PUBLISHING', 'UNKNOWN') then 'QUEUE' else old.state end;
  is_root     boolean := new.after_post is null;
  other_error boolean;
begin
  if not exists (select from webhook w where w.org_id = new.org_id and w.disabled_at is null) then
    return null;
  end if;
  select r.id, r.state,
    case
      when r.state <> 'PUBLISHED' then r.state
      else coalesce((
        select f.state from post f
        where f.group_id = any (array[new.group_id]) and (f.org_id = new.org_id) is true and f.after_post is not null
          and f.deleted_at is null and f.state <> 'PUBLISHED'
        order by f.state <> 'ERROR', f.id limit 1), 'PUBLISHED') end,
    exists (
      select from post f
      where f.group_id = any (array[new.group_id]) and (f.org_id = new.org_id) is true and f.after_post is not null
        and f.deleted_at is null and f.id <> new.id and f.state = 'ERROR'
        and (f.updated_at < now() or new.error_code = 'predecessor_failed'))
  into thread_id, root_state, shown, other_error
  from post r
  where r.group_id = any (array[new.group_id]) and (r.org_id = new.org_id) is true and r.after_post is null
    and r.deleted_at is null;
  shown := case when shown in ('WAITING', 'PUBLISHING', 'UNKNOWN') then 'QUEUE' else shown end;
  if thread_id is null or shown = was then
    return null;
  end if;
  -- A follower counts if its state is the thread's state, and the first failed follower reports for those behind it.
  if not is_root and (root_state <> 'PUBLISHED' or shown <> new.state or shown = 'ERROR' and other_error) then
    return null;
  end if;
  insert into webhook_event (org_id, event, post_id, state, release_id, release_url, error, error_code)
  values (new.org_id,
    case shown when 'PUBLISHED' then 'post.published' when 'ERROR' then 'post.failed' else 'post.status_changed' end,
    thread_id, shown,
    case when is_root then new.release_id end, case when is_root then new.release_url end,
    case when shown = 'ERROR' then new.error end, case when shown = 'ERROR' then new.error_code end);
  return null;
end $$;
create trigger post_webhook after update of state on post for each row
  when (new.deleted_at is null and old.state <> new.state
    and (old.state in ('DRAFT', 'PUBLISHED', 'ERROR') or new.state in ('DRAFT', 'PUBLISHED', 'ERROR')))
  execute function webhook_record();

-- Posts that were published, at least in part, and are now queued again or drafts, by the day for which they were first
-- published. They count toward the plan. A trigger counts them, because several statements begin a new round.
create table republished (
  org_id uuid not null references organization (id) on delete cascade,
  day    date not null,
  posts  integer not null check (posts > 0),
  constraint republished_pkey primary key (org_id, day)
);
create function republished_record() returns trigger language plpgsql as $$
begin
  if old.state = 'ERROR' and not old.outcome_unknown and not exists (
    select from publication x where x.post_id = old.id and x.number = old.republish and x.phase = 'done')
  then
    return null;
  end if;
  insert into republished (org_id, day, posts)
  values (new.org_id, (greatest(old.publish_date, old.due) at time zone 'UTC')::date, 1)
  on conflict (org_id, day) do update set posts = republished.posts + 1;
  return null;
end $$;
create trigger post_republished after update of state on post for each row
  when (old.state in ('PUBLISHED', 'ERROR') and new.state in ('QUEUE', 'DRAFT') and old.after_post is null and old.delay_minutes = 0)
  execute function republished_record();

-- Notifications of people, and the events that become incidents -------------------------------------------------------

-- What happened to posts and channels, written in the transaction in which it happened and deleted in the transaction
-- that counts it in a notification. It has no foreign keys, so that publishing never waits for a lock because of it;
-- the purge of an organization deletes its rows.
create table incident_event (
  org_id     uuid not null,
  id         bigint generated always as identity,
  at         timestamptz not null default clock_timestamp(),
  -- publishing.IncidentEventKind.
  kind       text not null check (kind in ('failed', 'missed', 'unknown', 'published', 'refused', 'connected')),
  channel_id uuid not null,
  -- Null for an event of the channel itself.
  post_id    uuid,
  -- post.error_code, and the reason, for people.
  code       text,
  reason     text,
  constraint incident_event_pkey primary key (org_id, id)
);

-- An entry in the bell: an incident of a channel with the number of its posts, the published posts of a day, or an
-- approval.
create table notification (
  org_id      uuid not null references organization (id) on delete cascade,
  id          uuid not null,
  -- publishing.NotificationKind.
  kind        text not null check (kind in ('reconnect', 'failed', 'missed', 'unknown', 'published', 'approval')),
  -- Of an incident, and of published posts if all of them are for one channel.
  channel_id  uuid,
  -- Of an approval, and its answer; pending: it was requested.
  approval_id uuid,
  answer      text check (answer in ('pending', 'approved', 'rejected', 'void')),
  -- Who sees it; null: every member.
  person_id   uuid,
  -- Its first post; null while it has none.
  post_id     uuid,
  -- Why the first post failed, or why the channel must be reconnected: a code for programs, and a sentence for people.
  code        text check (length(code) <= 128),
  reason      text check (length(reason) <= 500),
  -- Posts so far.
  posts       integer not null default 0 check (posts >= 0),
  created_at  timestamptz not null,
  -- When an event was last counted; later than the last_at of all others in the organization at that time.
  last_at     timestamptz not null,
  -- Set once it has ended: the next event of the kind is another incident.
  closed_at   timestamptz,
  -- When its mails are to be queued; null: they were queued, or there are none.
  mail_at     timestamptz,
  -- The value of posts when its mails were last queued; null before that, and again once it was reopened.
  mailed_posts integer,
  -- When its mails were last queued; null before that.
  mailed_at    timestamptz,
  -- How often it recurred after people were mailed, and how many posts they knew of at the last recurrence.
  reopened      integer not null default 0 check (reopened >= 0),
  earlier_posts integer not null default 0 check (earlier_posts >= 0),
  constraint notification_pkey primary key (org_id, id),
  constraint notification_subject check (
    case kind when 'approval' then channel_id is null when 'published' then true else channel_id is not null end
    and (kind = 'approval') = (approval_id is not null) and (kind = 'approval') = (answer is not null))
);
-- A channel has one open incident of a kind, and one of unknown outcomes for each day. The published posts of a day are
-- one notification.
create unique index notification_open on notification (org_id, channel_id, kind)
  where closed_at is null and kind in ('reconnect', 'failed', 'missed');
-- Incidents that ended recently.
create index notification_closed on notification (org_id, closed_at) where closed_at is not null;
create unique index notification_unknown on notification (org_id, channel_id, ((created_at at time zone 'UTC')::date))
  where kind = 'unknown';
create unique index notification_published on notification (org_id, ((created_at at time zone 'UTC')::date))
  where kind = 'published';
-- NotificationPage: the most recent activity first.
create index notification_last on notification (org_id, last_at desc, id desc);
-- MailOrgs and the mails of an organization that are due.
create index notification_mail on notification (org_id, mail_at) where mail_at is not null;
-- Retention. An expression, so that look-ups by key do not use this index.
create index notification_old on notification (last_at, (id::text));

-- The published posts of a notification by channel, until its mails are queued.
create table notification_posts (
  org_id          uuid not null,
  notification_id uuid not null,
  channel_id      uuid not null,
  posts           integer not null check (posts > 0),
  constraint notification_posts_pkey primary key (org_id, notification_id, channel_id),
  constraint notification_posts_of foreign key (org_id, notification_id) references notification (org_id, id)
    on delete cascade
);

-- Until when a member has read all notifications of the organization. Without a row: until the membership began.
create table notification_read (
  org_id    uuid not null,
  person_id uuid not null,
  -- notification.last_at of the newest notification that was read.
  read_at   timestamptz not null,
  constraint notification_read_pkey primary key (org_id, person_id),
  constraint notification_read_member foreign key (org_id, person_id) references member (org_id, person_id)
    on delete cascade
);

-- The notifications after notification_read.read_at that a member has read.
create table notification_seen (
  org_id          uuid not null,
  person_id       uuid not null,
  notification_id uuid not null,
  -- notification.last_at at that time: if more is counted later, the notification is unread again.
  last_at         timestamptz not null,
  constraint notification_seen_pkey primary key (org_id, person_id, notification_id),
  constraint notification_seen_member foreign key (org_id, person_id) references member (org_id, person_id)
    on delete cascade,
  constraint notification_seen_of foreign key (org_id, notification_id) references notification (org_id, id)
    on delete cascade
);
-- Deleting a notification.
create index notification_seen_notification on notification_seen (org_id, notification_id);

-- Like webhook_record: about fifteen statements end posts, and none of them may forget the event. A post with an
-- unknown outcome has no event yet: the platform is asked, and answers most of these within seconds. A post that failed
-- because its predecessor did has no separate event.
create function incident_record() returns trigger language plpgsql as $$
begin
  insert into incident_event (org_id, kind, channel_id, post_id, code, reason)
  values (new.org_id,
    case
      when new.state = 'PUBLISHED' then 'published'
      when new.outcome_unknown then 'unknown'
      when new.error_code = 'missed' then 'missed'
      else 'failed' end,
    new.channel_id, new.id, left(new.error_code, 128), left(new.error, 500));
  return null;
end $$;
create trigger post_incident after update of state on post for each row
  when (new.deleted_at is null and old.state <> new.state
    and (new.state = 'PUBLISHED' and new.after_post is null
      or new.state = 'ERROR' and new.error_code is distinct from 'predecessor_failed'))
  execute function incident_record();
create function channel_incident_record() returns trigger language plpgsql as $$
begin
  insert into incident_event (org_id, kind, channel_id, reason)
  values (new.org_id, case when new.refresh_needed and new.deleted_at is null then 'refused' else 'connected' end, new.id,
    left(new.refresh_problem, 500));
  return null;
end $$;
create trigger channel_incident after update of refresh_needed, deleted_at on channel for each row
  when (old.refresh_needed <> new.refresh_needed or (old.deleted_at is null) <> (new.deleted_at is null))
  execute function channel_incident_record();

-- Applications at platforms -------------------------------------------------------------------------------------------

-- An organization's own application at a family of platforms, used instead of the instance's application.
create table platform_app (
  org_id     uuid not null references organization (id) on delete cascade,
  -- connector.Family.ID.
  family     text not null,
  client_id  text not null,
  -- Sealed like channel.credential.
  sealed_secret bytea not null check (octet_length(sealed_secret) <= 4096),
  -- Who entered the secret and may know it. It is kept after the account is gone.
  set_by     uuid,
  updated_at timestamptz not null default now(),
  constraint platform_app_pkey primary key (org_id, family)
);


-- Approvals: requests for someone else to review a draft --------------------------------------------------------------

-- A request and its answer. Only the newest request of a post counts. A statement that writes one has locked the posts
-- of the group, or changes only a pending request.
create table approval (
  org_id         uuid not null references organization (id) on delete cascade,
  -- A later request has a greater id.
  id             uuid not null,
  -- The first post of the thread.
  post_id        uuid not null,
  -- VOID: withdrawn, or the post was changed or scheduled.
  status         text not null default 'PENDING' check (status in ('PENDING', 'APPROVED', 'REJECTED', 'EXPIRED', 'VOID')),
  -- SHA-256 of the token in the mailed review link, and the secret from which the tokens of all its links are derived,
  -- sealed like channel.credential.
  token_hash     bytea not null,
  sealed_token   bytea not null check (octet_length(sealed_token) <= 1024),
  auto_schedule  boolean not null default false,
  note           text check (length(note) <= 2000),
  reviewer_email text check (length(reviewer_email) <= 320),
  -- The members whose mailbox the link was mailed to.
  reviewer_people uuid[] not null default '{}',
  -- Who asked. Ids of a person or key that is gone stay.
  requested_by   uuid,
  requested_key  uuid,
  -- The administrator of the instance who asked as the person; null: the person did.
  requested_behind uuid,
  -- The agent that asked on behalf of the person, the grant that it had, and its name at that time; null and empty: no
  -- agent did. The values remain when the grant is revoked.
  requested_agent uuid,
  requested_grant uuid,
  agent_name     text not null default '' check (length(agent_name) <= 200),
  requested_at   timestamptz not null,
  expires_at     timestamptz not null,
  -- When the reviewer is reminded; null: never, or already done.
  remind_at      timestamptz,
  reviewer_note  text check (length(reviewer_note) <= 2000),
  -- The name of a guest. A member is stored in resolved_by only, so that no address remains when
  -- the account is gone.
  reviewer_name  text check (length(reviewer_name) <= 320),
  -- The member who answered; null for a guest.
  resolved_by    uuid,
  resolved_at    timestamptz,
  constraint approval_pkey primary key (org_id, id),
  constraint approval_token_hash_key unique (token_hash),
  constraint approval_org_id_post_id_fkey foreign key (org_id, post_id) references post (org_id, id) on delete cascade,
  constraint approval_resolved check ((status = 'PENDING') = (resolved_at is null)),
  constraint approval_reviewer check (resolved_by is null or reviewer_name is null),
  constraint approval_agent check ((requested_agent is null) = (requested_grant is null))
);
-- A post has at most one pending request.
create unique index approval_pending on approval (org_id, post_id) where status = 'PENDING';
-- ApprovalOf. Deleting a post deletes its approvals.
create index approval_post on approval (org_id, post_id, id);
-- ReviewerOrgs, ReviewerForget.
create index approval_reviewer_email on approval (reviewer_email) where reviewer_email is not null;
-- ApprovalsDue.
create index approval_due on approval (least(expires_at, remind_at), id) where status = 'PENDING';
-- ReviewMails.
create index approval_mailed on approval (org_id, requested_at) where reviewer_email is not null;


-- Analytics -----------------------------------------------------------------------------------------------------------

-- When the statistics of a channel or a post were read, and when they are next read without a request.
create table insight (
  org_id     uuid not null,
  -- The id of the channel, or of the first post of a thread.
  subject    uuid not null,
  channel_id uuid not null,
  -- Null: the channel itself.
  post_id    uuid,
  -- The id of the post on its platform, which republishing replaces; empty for a channel.
  release    text not null default '',
  read_at    timestamptz,
  -- The last attempt. If it failed, problem says why, as a sentence for people.
  tried_at   timestamptz,
  problem    text not null default '' check (octet_length(problem) <= 1000),
  -- The last response had no figures, for example for a post that the platform no longer has.
  empty      boolean not null default false,
  -- The platform asked us not to read the channel and its posts before then; null for a post.
  again_at   timestamptz,
  -- When the daily snapshot is due; null for a post, which is read with its channel.
  next_at    timestamptz,
  -- Failed snapshots since the last successful one: each makes the next attempt wait longer.
  failures   smallint not null default 0 check (failures >= 0),
  constraint insight_pkey primary key (org_id, subject),
  constraint insight_subject check (subject = coalesce(post_id, channel_id)),
  constraint insight_channel_fkey foreign key (org_id, channel_id) references channel (org_id, id) on delete cascade,
  constraint insight_post_fkey foreign key (org_id, post_id) references post (org_id, id) on delete cascade
);
-- Deleting a post or a channel deletes its statistics.
create index insight_post on insight (post_id, org_id) where post_id is not null;
create index insight_channel on insight (channel_id, org_id);

-- The metrics of one UTC day, by the labels of the platform. Unknown values have no member, and a day without any known
-- value has no row.
create table insight_day (
  org_id  uuid not null,
  subject uuid not null,
  day     date not null,
  -- Counts of what happened on that day, and values at its end.
  counts  jsonb not null default '{}' check (jsonb_typeof(counts) = 'object' and octet_length(counts::text) <= 16384),
  levels  jsonb not null default '{}' check (jsonb_typeof(levels) = 'object' and octet_length(levels::text) <= 16384),
  -- The day was over when it was last read.
  whole   boolean not null,
  constraint insight_day_pkey primary key (org_id, subject, day),
  constraint insight_day_subject_fkey foreign key (org_id, subject) references insight (org_id, subject) on delete cascade
);
-- Retention.
create index insight_day_day on insight_day (day, (subject::text));


-- Who may see and do what ---------------------------------------------------------------------------------------------
--
-- Six roles without a log-in, created by crier migrate and entered by the service's connections (platform/pg). Grants
-- limit columns, and policies limit rows, for the owner of the tables too. crier_jobs runs background jobs: it has the
-- tables that River creates in the schema jobs (river.go) and nothing here.
create schema jobs;

-- crier_tenant: everything of the organization that the transaction has set, and nothing of any other.
do $$
declare t text;
begin
  foreach t in array array[
    'member', 'invitation', 'invitation_link', 'api_key', 'customer', 'channel', 'connect_state', 'pause', 'media', 'upload_address',
    'derived_picture', 'series', 'tag', 'post',
    'part', 'attachment', 'publication', 'channel_queue', 'post_event', 'idempotency', 'slot_hold', 'platform_app',
    'republished', 'insight', 'insight_day'
  ] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format($p$create policy tenant on %I to crier_tenant
      using (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))
      with check (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))$p$, t);
    execute format('grant select, insert, update, delete on %I to crier_tenant', t);
  end loop;
end $$;
alter table organization enable row level security;
alter table organization force row level security;
create policy tenant on organization to crier_tenant
  using (id = (select nullif(current_setting('app.org_id', true), '')::uuid))
  with check (id = (select nullif(current_setting('app.org_id', true), '')::uuid));
grant select, insert (id, name, description, timezone, created_at, created_by), update (name, description, timezone, timezone_chosen, mfa_required)
  on organization to crier_tenant;
-- Only people who are members: the policy of member applies inside this one.
alter table person enable row level security;
alter table person force row level security;
create policy tenant on person for select to crier_tenant using (exists (
  select 1 from member m where m.person_id = person.id));
grant select (id, email, mailbox, name, picture, notifications, created_at) on person to crier_tenant;
grant usage on sequence post_seq to crier_tenant;
alter table audit enable row level security;
alter table audit force row level security;
create policy tenant on audit to crier_tenant
  using (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))
  with check (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid));
grant select, insert on audit to crier_tenant;

-- crier_gate: finds the owner of a credential, a file or a connect state before any organization is known, and has
-- everything that belongs to people instead of organizations.
create policy gate on person to crier_gate using (true) with check (true);
grant select, insert, update, delete on person to crier_gate;
grant select, insert, update, delete on session, device, confirmation, confirmation_link, mfa, sign_in_step to crier_gate;
grant select, insert, delete on recovery_code, sign_in_state, identity_claim, used_request, mail to crier_gate;
grant update (data) on mail to crier_gate;
grant select, insert, delete on identity to crier_gate;
grant select, insert, delete on impersonation to crier_gate;
grant select, insert on instance_event to crier_gate;
create policy gate on audit for insert to crier_gate with check (true);
grant insert on audit to crier_gate;
create policy gate on organization to crier_gate using (true) with check (true);
grant select (id, name, description, mfa_required, suspended_at, deleted_at, deleted_with, catch_up, created_at, created_by),
  update (suspended_at, deleted_at, deleted_with, catch_up), delete on organization to crier_gate;
create policy gate_delete on organization as restrictive for delete to crier_gate using (deleted_at is not null);
create policy gate on member for select to crier_gate using (true);
grant select (org_id, person_id, role, disabled, created_at) on member to crier_gate;
create policy gate on invitation for select to crier_gate using (true);
grant select (org_id, id, email, invited_by, expires_at) on invitation to crier_gate;
create policy gate_delete on invitation for delete to crier_gate using (expires_at < now());
grant delete on invitation to crier_gate;
create policy gate on invitation_link for select to crier_gate using (true);
grant select (org_id, invitation_id, hash) on invitation_link to crier_gate;
create policy gate on api_key to crier_gate using (true) with check (true);
grant select (org_id, id, hash, created_by, used_at, expires_at, overlap_until), update (used_at) on api_key to crier_gate;
create policy gate on media for select to crier_gate using (deleted_at is null);
grant select (key, org_id, id, blob, name, ext, content_type, size, edits, deleted_at) on media to crier_gate;
create policy gate on connect_state for select to crier_gate using (true);
grant select (hash, org_id, person_id, key_id, behind_id, session_id, expires_at, state_until) on connect_state to crier_gate;
create policy gate on upload_address for select to crier_gate using (true);
grant select (hash, org_id, via, credential_hash, expires_at) on upload_address to crier_gate;

-- crier_clock: claims, finishes, sweeps and reaps across organizations. It reads neither content nor credentials.
grant select, insert, update, delete on node to crier_clock;
grant select, update on shard to crier_clock;
create policy clock on organization for select to crier_clock using (true);
grant select (id, created_by) on organization to crier_clock;
create policy clock on member for select to crier_clock using (true);
grant select (org_id, person_id, role) on member to crier_clock;
create policy clock on person for select to crier_clock using (true);
grant select (id, mailbox) on person to crier_clock;
create policy clock on channel to crier_clock using (true) with check (true);
grant select (org_id, id, connector, grade, disabled, refresh_needed, refresh_at, deleted_at) on channel to crier_clock;
grant update (refresh_needed, refresh_at, updated_at) on channel to crier_clock;
create policy clock on channel_queue to crier_clock using (true) with check (true);
grant select, update on channel_queue to crier_clock;
create policy clock on post to crier_clock using (true) with check (true);
grant select (
  org_id, id, group_id, channel_id, shard, seq, state, due, publish_date, after_post, delay_minutes, revision,
  republish, not_before, attempt, failing_since, phase, claim_token, claim_round, claim_holder, claim_until,
  committing_at, call_ended, looks, maybe_sent, nominal_due, reaps, release_id, error_code, outcome_unknown, series_id,
  occurrence, series_passed, updated_at, deleted_at
) on post to crier_clock;
grant update (
  state, due, publish_date, not_before, attempt, failing_since, phase, claim_token, claim_round, claim_holder,
  claim_until, committing_at, call_ended, looks, maybe_sent, nominal_due, reaps, release_id, release_url,
  error, error_code, outcome_unknown, updated_at
) on post to crier_clock;
create policy clock on part for select to crier_clock using (true);
grant select (org_id, id, post_id, position) on part to crier_clock;
create policy clock on publication to crier_clock using (true) with check (true);
grant select, insert, update on publication to crier_clock;
create policy clock on post_event for insert to crier_clock with check (true);
grant insert on post_event to crier_clock;
create policy clock on pause for select to crier_clock using (scope = 'instance');
grant select (org_id, subject, scope) on pause to crier_clock;
create policy clock on series for select to crier_clock using (true);
grant select (org_id, id, number, stopped_at, retry_at) on series to crier_clock;
create policy clock on insight to crier_clock using (true) with check (post_id is null);
grant select (org_id, subject, next_at, failures), insert (org_id, subject, channel_id, next_at), update (next_at)
  on insight to crier_clock;
create policy clock on derived_picture for select to crier_clock using (true);
grant select (org_id, media_id, spec, shard, state, not_before) on derived_picture to crier_clock;

-- crier_sender: reads what a claimed post needs and nothing else. Every policy relies on the first. Two ways of writing
-- an equality steer the planner, which plans these once per connection, perhaps while tables are empty: it uses
-- "x = any (array[y])" only to look x up, and "is true" keeps it from using partial indexes.
create policy sender on post for select to crier_sender using ((state in ('PUBLISHING', 'UNKNOWN')) is true);
grant select on post to crier_sender;
create policy sender on channel for select to crier_sender using (exists (
  select 1 from post p
  where p.channel_id = any (array[channel.id]) and (p.org_id = channel.org_id) is true and p.state in ('PUBLISHING', 'UNKNOWN')));
grant select on channel to crier_sender;
create policy sender on channel_queue for select to crier_sender using (exists (
  select 1 from post p
  where p.channel_id = any (array[channel_queue.channel_id]) and (p.org_id = channel_queue.org_id) is true
    and p.state in ('PUBLISHING', 'UNKNOWN')));
grant select (org_id, channel_id, destination, resumed_at) on channel_queue to crier_sender;
create policy sender on part for select to crier_sender using (exists (
  select 1 from post p where p.id = any (array[part.post_id]) and (p.org_id = part.org_id) is true));
grant select on part to crier_sender;
create policy sender on attachment for select to crier_sender using (exists (
  select 1 from part a where a.id = any (array[attachment.part_id]) and (a.org_id = attachment.org_id) is true));
grant select on attachment to crier_sender;
create policy sender on media for select to crier_sender using (exists (
  select 1 from attachment a where a.media_id = any (array[media.id]) and (a.org_id = media.org_id) is true));
grant select on media to crier_sender;
-- The whole group: a follower replies to the publications of the posts before it.
create policy sender on publication for select to crier_sender using (exists (
  select 1 from post p
  where p.group_id = any (array[publication.group_id]) and (p.org_id = publication.org_id) is true));
grant select on publication to crier_sender;

-- crier_retention: deletes across organizations what nobody can access any longer, and reads only what it needs to find
-- that. It reads the states of all posts, so that it never mistakes a post that it must not touch for a deleted one.
-- The policies repeat the conditions that must hold whatever a statement asks for: a post that may be on its platform
-- without our knowing stays. The rows that belong to a post are deleted through their foreign keys.
create policy retention_read on post for select to crier_retention using (true);
create policy retention on post for delete to crier_retention
  using (deleted_at is not null and not maybe_sent and state not in ('PUBLISHING', 'UNKNOWN'));
grant select (
  org_id, id, group_id, state, maybe_sent, after_post, delay_minutes, series_id, occurrence, series_passed, updated_at,
  deleted_at
) on post to crier_retention;
grant delete on post to crier_retention;

create policy retention on publication for select to crier_retention using (true);
grant select (org_id, post_id, phase, maybe_sent) on publication to crier_retention;
create policy retention on series for select to crier_retention using (true);
grant select (org_id, id, template, number, stopped_at) on series to crier_retention;

create policy retention_read on post_event for select to crier_retention using (true);
create policy retention on post_event for delete to crier_retention
  using (exists (
    select from post p
    where p.id = any (array[post_event.post_id]) and (p.org_id = post_event.org_id) is true and not p.maybe_sent
      and (p.state in ('PUBLISHED', 'ERROR')
        or p.deleted_at is not null and p.state not in ('PUBLISHING', 'UNKNOWN')) is true));
grant select (org_id, post_id, id, at) on post_event to crier_retention;
grant delete on post_event to crier_retention;

create policy retention_read on idempotency for select to crier_retention using (true);
create policy retention on idempotency for delete to crier_retention using (created_at < now() - interval '1 day');
grant select (org_id, key, body, created_at) on idempotency to crier_retention;
grant delete on idempotency to crier_retention;

create policy retention_read on connect_state for select to crier_retention using (true);
create policy retention on connect_state for delete to crier_retention using (expires_at < now());
grant select (org_id, hash, expires_at) on connect_state to crier_retention;
grant delete on connect_state to crier_retention;

create policy retention_read on upload_address for select to crier_retention using (true);
create policy retention on upload_address for delete to crier_retention using (expires_at < now() - interval '1 day');
grant select (org_id, hash, expires_at) on upload_address to crier_retention;
grant delete on upload_address to crier_retention;

create policy retention_read on insight_day for select to crier_retention using (true);
create policy retention on insight_day for delete to crier_retention using (day < (now() - interval '1 day')::date);
grant select (org_id, subject, day) on insight_day to crier_retention;
grant delete on insight_day to crier_retention;

-- What a purge deletes of an organization before the organization itself. Only the policy on organization restricts it
-- to organizations marked for deletion; nobody else may delete or change an entry of the audit log.
create policy retention on organization for select to crier_retention using (deleted_at is not null);
grant select (id, deleted_at) on organization to crier_retention;
do $$
declare t text;
begin
  foreach t in array array['audit', 'invitation', 'api_key', 'member'] loop
    execute format('create policy retention_read on %1$I for select to crier_retention
      using (exists (select from organization o where o.id = %1$I.org_id))', t);
    execute format('create policy retention on %1$I for delete to crier_retention
      using (exists (select from organization o where o.id = %1$I.org_id))', t);
    execute format('grant delete on %I to crier_retention', t);
  end loop;
end $$;
grant select (org_id, id) on audit, invitation, api_key to crier_retention;
grant select (org_id, person_id, role) on member to crier_retention;

-- Locking a row requires the right to update it. No update passes the check, so nothing can be changed.
do $$
declare t text;
begin
  foreach t in array array['post', 'post_event', 'idempotency', 'connect_state', 'upload_address', 'insight_day'] loop
    execute format('create policy retention_lock on %I for update to crier_retention using (true) with check (false)', t);
    execute format('grant update (org_id) on %I to crier_retention', t);
  end loop;
end $$;

-- Webhooks. The scheduler writes what happened for organizations with an endpoint, and sees which organizations and
-- endpoints have work; it reads neither addresses nor secrets nor what is sent.
do $$
declare t text;
begin
  foreach t in array array['webhook', 'webhook_old_key', 'webhook_event', 'webhook_delivery'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format($p$create policy tenant on %I to crier_tenant
      using (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))
      with check (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))$p$, t);
    execute format('grant select, insert, update, delete on %I to crier_tenant', t);
  end loop;
end $$;
create policy clock on webhook for select to crier_clock using (true);
grant select (org_id, id, disabled_at, aside, next_at, queued_until, running_until) on webhook to crier_clock;
create policy clock on webhook_event for insert to crier_clock with check (true);
create policy clock_read on webhook_event for select to crier_clock using (true);
grant select (org_id, id) on webhook_event to crier_clock;
grant insert (org_id, event, post_id, state, release_id, release_url, error, error_code) on webhook_event to crier_clock;
create policy retention_read on webhook_delivery for select to crier_retention using (true);
create policy retention on webhook_delivery for delete to crier_retention using (created_at < now() - interval '1 day');
create policy retention_lock on webhook_delivery for update to crier_retention using (true) with check (false);
grant select (org_id, id, created_at) on webhook_delivery to crier_retention;
grant delete, update (org_id) on webhook_delivery to crier_retention;
create policy retention_read on webhook_old_key for select to crier_retention using (true);
create policy retention on webhook_old_key for delete to crier_retention using (ends_at < now());
create policy retention_lock on webhook_old_key for update to crier_retention using (true) with check (false);
grant select (org_id, id, ends_at) on webhook_old_key to crier_retention;
grant delete, update (org_id) on webhook_old_key to crier_retention;

-- Approvals. The gate finds the approval of a review link; the scheduler finds requests that have expired or need a
-- reminder.
alter table approval enable row level security;
alter table approval force row level security;
create policy tenant on approval to crier_tenant
  using (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))
  with check (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid));
grant select, insert, update, delete on approval to crier_tenant;
create policy gate on approval for select to crier_gate using (true);
grant select (org_id, id, token_hash, requested_by, reviewer_people) on approval to crier_gate;
create policy clock on approval for select to crier_clock using (true);
grant select (org_id, id, status, expires_at, remind_at) on approval to crier_clock;
-- Which organizations have asked a person who is being purged for a review.
create policy retention_read on approval for select to crier_retention using (true);
grant select (org_id, reviewer_email) on approval to crier_retention;

-- Notifications. The scheduler writes what happened, and sees which organizations have work; it reads neither what
-- failed nor what people are notified of.
do $$
declare t text;
begin
  foreach t in array array['incident_event', 'notification', 'notification_posts', 'notification_read', 'notification_seen'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format($p$create policy tenant on %I to crier_tenant
      using (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))
      with check (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))$p$, t);
    execute format('grant select, insert, update, delete on %I to crier_tenant', t);
  end loop;
end $$;
create policy clock on incident_event for insert to crier_clock with check (true);
create policy clock_read on incident_event for select to crier_clock using (true);
grant select (org_id, id, at) on incident_event to crier_clock;
grant insert (org_id, kind, channel_id, post_id, code, reason) on incident_event to crier_clock;
create policy clock on notification for select to crier_clock using (true);
grant select (org_id, mail_at) on notification to crier_clock;
create policy retention_read on notification for select to crier_retention using (true);
create policy retention on notification for delete to crier_retention using (last_at < now() - interval '1 day');
create policy retention_lock on notification for update to crier_retention using (true) with check (false);
grant select (org_id, id, last_at) on notification to crier_retention;
grant delete, update (org_id) on notification to crier_retention;

-- OAuth. The gate finds the organization of a token or code, and manages the clients, which belong to no organization.
-- It can read all of a token's grant, because a request's principal is made from the grant.
do $$
declare t text;
begin
  foreach t in array array[
    'oauth_app', 'oauth_grant', 'oauth_grant_day', 'oauth_family', 'oauth_code', 'oauth_token'
  ] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format($p$create policy tenant on %I to crier_tenant
      using (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))
      with check (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))$p$, t);
    execute format('grant select, insert, update, delete on %I to crier_tenant', t);
  end loop;
end $$;
grant select, insert, update, delete on oauth_client, device_code to crier_gate;
create policy gate on oauth_grant to crier_gate using (true) with check (true);
grant select, update (used_at) on oauth_grant to crier_gate;
create policy gate on oauth_family for select to crier_gate using (true);
grant select on oauth_family to crier_gate;
create policy gate on oauth_code for select to crier_gate using (true);
grant select (hash, org_id, grant_id) on oauth_code to crier_gate;
create policy gate on oauth_token for select to crier_gate using (true);
grant select (hash, org_id, family_id, kind, created_at, expires_at, voided) on oauth_token to crier_gate;

-- Retention deletes what has expired, and grants and families without anything that could still be used.
create policy retention_read on oauth_token for select to crier_retention using (true);
create policy retention on oauth_token for delete to crier_retention using (expires_at < now() - interval '1 hour');
grant select (org_id, hash, family_id, expires_at), delete on oauth_token to crier_retention;
create policy retention_read on oauth_code for select to crier_retention using (true);
create policy retention on oauth_code for delete to crier_retention using (expires_at < now() - interval '1 day');
grant select (org_id, hash, grant_id, expires_at), delete on oauth_code to crier_retention;
create policy retention_read on oauth_family for select to crier_retention using (true);
create policy retention on oauth_family for delete to crier_retention using (created_at < now() - interval '1 day');
grant select (org_id, id, grant_id, created_at), delete on oauth_family to crier_retention;
create policy retention_read on oauth_grant for select to crier_retention using (true);
create policy retention on oauth_grant for delete to crier_retention using (approved_at < now() - interval '1 day');
grant select (org_id, id, approved_at), delete on oauth_grant to crier_retention;
create policy retention_read on oauth_grant_day for select to crier_retention using (true);
create policy retention on oauth_grant_day for delete to crier_retention
  using (day < (now() - interval '3 days')::date);
grant select (org_id, grant_id, day), delete on oauth_grant_day to crier_retention;

-- Narrowed transactions. An agent's grant may be limited to channels and customers. Its transactions set app.channels
-- and app.customers (uuid[] as text) together with app.org_id, and the policies named narrow hide every row that shows
-- another channel or its posts, customers, publications, statistics or notifications. A customer's channels are those
-- at the time of the statement. Transactions that set nothing see all rows of the organization.
--
-- These tables are not hidden from a narrowed transaction. Either their rows show no channel and no post, or the rows
-- must be counted or unique for the whole organization and are never shown:
--   organization, member, person, invitation, invitation_link, api_key, platform_app: people and credentials, but no
--     destinations.
--   media, upload_address, derived_picture, tag: the library and the labels of the whole organization. Whether a file is
--     in use is checked with all rows visible (pg.Whole).
--   idempotency, slot_hold, republished: keys, times and counts of the whole organization. The response stored under a
--     key names posts; post.Create returns it only if their channels are visible.
--   webhook, webhook_old_key: the triggers on post must see every endpoint. Agents cannot read or change endpoints.
-- One table is hidden completely: audit, whose entries name posts and channels in their texts. Entries are still
-- appended.
--
-- Every condition is "(case ... end) is not null". When nothing is narrowed, the case ends at its first branch, and the
-- branches after it are not evaluated. The planner assumes that such a condition is true for 99.5 % of the rows, so the
-- plans of other transactions stay as they are; with "or", it would expect half of the rows. The functions cost 1 for
-- the same reason. They are in PL/pgSQL, which plans them when they are called and keeps the plans: subqueries would be
-- planned with every statement, which takes a quarter of the time of a create behind a transaction pooler. The functions
-- run with the rights of the caller, so the policies of the tables that they read apply in them.
create function narrowed_channels() returns uuid[] language plpgsql stable parallel safe cost 1 as $$
begin
  if nullif(current_setting('app.customers', true), '') = '{}' then
    return current_setting('app.channels', true)::uuid[];
  end if;
  return array(select c.id from channel c);
end $$;
create function narrowed_customers() returns uuid[] language plpgsql stable parallel safe cost 1 as $$
begin
  return nullif(current_setting('app.customers', true), '')::uuid[]
    || array(select c.customer_id from channel c where c.customer_id is not null);
end $$;
create function narrowed_post(id uuid) returns boolean language plpgsql stable parallel safe cost 1 as $$
begin
  return exists (select from post p where p.id = narrowed_post.id);
end $$;
create function narrowed_part(id uuid) returns boolean language plpgsql stable parallel safe cost 1 as $$
begin
  return exists (select from part a where a.id = narrowed_part.id);
end $$;
create function narrowed_insight(subject uuid) returns boolean language plpgsql stable parallel safe cost 1 as $$
begin
  return exists (select from insight i where i.subject = narrowed_insight.subject);
end $$;
do $$
declare t text[];
begin
  foreach t slice 1 in array array[
    -- The filter itself.
    ['channel', 'id = any ((select nullif(current_setting(''app.channels'', true), '''')::uuid[])::uuid[])
      or customer_id = any ((select nullif(current_setting(''app.customers'', true), '''')::uuid[])::uuid[])'],
    -- A customer that is listed, and the customer of a channel that is visible.
    ['customer', 'id = any ((select narrowed_customers())::uuid[])'],
    -- Rows with the id of their channel.
    ['post', 'channel_id = any ((select narrowed_channels())::uuid[])'],
    ['series', 'channel_id = any ((select narrowed_channels())::uuid[])'],
    ['channel_queue', 'channel_id = any ((select narrowed_channels())::uuid[])'],
    ['incident_event', 'channel_id = any ((select narrowed_channels())::uuid[])'],
    ['notification_posts', 'channel_id = any ((select narrowed_channels())::uuid[])'],
    ['insight', 'channel_id = any ((select narrowed_channels())::uuid[])'],
    -- An attempt to connect a new account has no channel yet.
    ['connect_state', 'channel_id is null or channel_id = any ((select narrowed_channels())::uuid[])'],
    -- A pause of the whole organization applies to every channel.
    ['pause', 'subject = org_id or subject = any ((select narrowed_channels())::uuid[])
      or subject = any ((select narrowed_customers())::uuid[])'],
    -- Rows with the id of their post.
    ['part', 'narrowed_post(post_id)'],
    ['publication', 'narrowed_post(post_id)'],
    ['post_event', 'narrowed_post(post_id)'],
    ['approval', 'narrowed_post(post_id)'],
    ['webhook_event', 'narrowed_post(post_id)'],
    ['webhook_delivery', 'post_id is null or narrowed_post(post_id)'],
    -- Rows that belong to a part, or to the statistics of a channel or a post.
    ['attachment', 'narrowed_part(part_id)'],
    ['insight_day', 'narrowed_insight(subject)'],
    -- Published posts of several channels are counted in one notification without a channel, which is hidden.
    ['notification', 'case when channel_id is not null then channel_id = any ((select narrowed_channels())::uuid[])
      when kind = ''approval'' then narrowed_post(post_id) end']
  ] loop
    execute format($p$create policy narrow on %I as restrictive to crier_tenant using ((case
      when (select coalesce(current_setting('app.channels', true), '') = '') then true when %s then true end) is not null)$p$,
      t[1], t[2]);
  end loop;
end $$;
create policy narrow on audit as restrictive for select to crier_tenant
  using ((select coalesce(current_setting('app.channels', true), '') = ''));
