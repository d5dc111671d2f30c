-- Background jobs: River makes its own tables here, see river.go; after.sql grants them.
create schema jobs;

-- Retention: what is pruned is found by its time alone.
create index idempotency_created on idempotency (created_at);
create index post_event_at on post_event (at);
create index connect_state_expires on connect_state (expires_at);
create index session_expires on session (expires_at);
create index post_deleted on post (deleted_at) where deleted_at is not null;
-- The templates of a series' occurrences are stored as deleted posts; this tells whether one is in use.
create index series_template on series (template);

-- A delayed part cannot be left behind before its own time, so those that are booked for later are not read. An
-- expression, so that the planner does not take the index of the calendar, which it would read from end to end.
drop index post_waiting;
create index post_waiting on post (shard, (publish_date at time zone 'UTC')) where state = 'WAITING' and deleted_at is null;

-- The retention role deletes across organizations what nobody can reach any more, and reads only what it needs to
-- know that. It reads how all posts stand, so that a post that it must not touch is never taken for one that is gone.
-- The policies repeat the conditions that must never be got wrong, whatever a statement asks for: a post that may be
-- at its platform without our knowing stays. The rows below it go by their foreign keys.
create policy retention_read on post for select to crier_retention using (true);
create policy retention on post for delete to crier_retention
  using (deleted_at is not null and not maybe_sent and state not in ('PUBLISHING', 'UNKNOWN'));
grant select (org_id, id, group_id, state, maybe_sent, after_post, series_id, occurrence, series_passed, updated_at, deleted_at)
  on post to crier_retention;
grant delete on post to crier_retention;

create policy retention on publication for select to crier_retention using (true);
grant select (org_id, post_id, phase, maybe_sent) on publication to crier_retention;
create policy retention on series for select to crier_retention using (true);
grant select (org_id, id, template, number, stopped_at) on series to crier_retention;

create policy retention_read on post_event for select to crier_retention using (true);
create policy retention on post_event for delete to crier_retention
  using (exists (select from post p where p.id = any (array[post_event.post_id]) and (p.org_id = post_event.org_id) is true
    and not p.maybe_sent and (p.state in ('PUBLISHED', 'ERROR') or p.deleted_at is not null and p.state not in ('PUBLISHING', 'UNKNOWN')) is true));
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

-- Locking a row needs the right to update it. No update passes its check, so nothing can be changed.
do $$
declare t text;
begin
  foreach t in array array['post', 'post_event', 'idempotency', 'connect_state'] loop
    execute format('create policy retention_lock on %I for update to crier_retention using (true) with check (false)', t);
    execute format('grant update (org_id) on %I to crier_retention', t);
  end loop;
end $$;
