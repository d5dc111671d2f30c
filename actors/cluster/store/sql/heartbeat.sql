-- cluster.NodeBeat
--
-- Renews the lease of a node, or creates it. A node that is leaving ($4) releases its shards. The other nodes are
-- notified when a node joins, and when it starts or stops leaving.
--
-- Result: whether the node had an unexpired lease; whether there are shards without a live owner; whether the other
-- nodes were notified.
--
--   $1 node uuid: the node
--   $2 address text: where other nodes reach its actors; '' = they cannot
--   $3 roles text[]: its roles
--   $4 leaving boolean: it takes no shards
--   $5 ttl double precision: milliseconds that the lease lasts from now
--   $6 home uuid: the data folder, which only this node has locked
--
--   PREPARE heartbeat (uuid, text, text[], boolean, double precision, uuid) AS
--   EXPLAIN EXECUTE heartbeat (null, null, null, null, null, null);
with old as (
  -- The node before this statement.
  select expires_at > now() as alive, leaving from node where id = $1
), renewed as (
  -- Its lease.
  insert into node (id, home, address, roles, leaving, expires_at)
  values ($1, $6, $2, $3, $4, now() + $5 * interval '1 millisecond')
  on conflict (id) do update set leaving = excluded.leaving, expires_at = excluded.expires_at
), freed as (
  -- Its shards, if it is leaving.
  update shard set owner = null where owner = $1 and $4
)
select coalesce((select alive from old), false),
  exists (select from shard s where not exists (select from node n where n.id = s.owner and n.expires_at > now())),
  case when (select leaving from old) is distinct from $4 then pg_notify('crier_cluster', '') is null end
