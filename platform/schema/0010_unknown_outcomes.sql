-- An outcome that is not known stays known as such: maybe_sent says that a call may have reached the platform and that nothing has proved the opposite.
-- post.maybe_sent is the flag of the post's current round, so that every statement that ends a post can look at its own row.
alter table publication
  add column maybe_sent boolean not null default false,
  add column second_release_id text, add column second_release_url text,  -- a second success of the same publication; it raises an alarm
  alter column id drop default;                                           -- derived by the claim from post, part, round and due time
alter table post
  add column maybe_sent boolean not null default false,
  add column nominal_due timestamptz,                                     -- of a delayed part: its due time, had everything before it been on time
  add column reaps integer not null default 0;                            -- claims in a row that ended with their worker
alter table post rename column claim_epoch to claim_round;                -- number of the claim statement, chosen by the process that sent it

alter table publication no force row level security;
alter table post no force row level security;
update publication set maybe_sent = true where phase = 'committing';
update post set maybe_sent = true where state = 'UNKNOWN' or outcome_unknown;
alter table publication force row level security;
alter table post force row level security;

-- The fence behind every statement: nothing that may be out is ever reported as surely failed.
alter table post add constraint post_maybe_sent check (state <> 'ERROR' or maybe_sent = outcome_unknown);
alter table post add constraint post_unknown_sent check (state <> 'UNKNOWN' or maybe_sent);

-- Where the calls of a channel go to, so that one server that hangs holds only a part of all calls.
-- A channel of before does not know where they go until it is reconnected, so that it counts alone.
alter table channel_queue add column destination text not null default '' check (length(destination) <= 255);
alter table channel_queue no force row level security;
update channel_queue set destination = connector || '/' || channel_id;
alter table channel_queue force row level security;
-- A claim looks at the channels of an organization window by window, in this order.
drop index channel_queue_org;
create index channel_queue_org on channel_queue (org_id, channel_id);

grant select (maybe_sent, nominal_due, reaps) on post to crier_clock;
grant update (maybe_sent, nominal_due, reaps) on post to crier_clock;
