// Package store keeps the tables of running processes and of who schedules which shard. Only actors/cluster uses it.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
)

// Store reads and writes nodes and shards on a connection of its own, so that a busy pool never delays a beat. The connection also hears of changes,
// and holds the lock that proves that its process lives.
type Store struct {
	db    *pg.DB
	conn  *pgx.Conn
	node  uuid.UUID
	fresh bool // the connection is new: what was told meanwhile was not heard
}

// New makes a store for one process start; it connects when first used. It is not safe for concurrent use.
func New(db *pg.DB, node uuid.UUID) *Store { return &Store{db: db, node: node} }

const channel = "crier_cluster"

// A session's lock goes with its session: while it is held, the process lives. The reverse is not true.
const lockKey = `hashtextextended('crier node ' || $1::uuid::text, 0)`

func (s *Store) connect(ctx context.Context) error {
	if s.conn != nil && !s.conn.IsClosed() {
		return nil
	}
	conn, err := s.db.Direct(ctx, pg.Clock)
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue("listen " + channel)
	b.Queue("select pg_try_advisory_lock("+lockKey+")", s.node)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	s.conn, s.fresh = conn, true
	return nil
}

func (s *Store) batch(ctx context.Context, queue func(*pgx.Batch)) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	b := &pgx.Batch{}
	queue(b)
	return s.conn.SendBatch(ctx, b).Close()
}

// Wait returns true when another process told of a change, false when ctx is over first. Without a connection it just waits.
func (s *Store) Wait(ctx context.Context) bool {
	if s.conn == nil || s.conn.IsClosed() {
		<-ctx.Done()
		return false
	}
	_, err := s.conn.WaitForNotification(ctx)
	if err != nil && ctx.Err() == nil {
		<-ctx.Done() // the connection broke: the next beat makes another
	}
	return err == nil
}

// Close ends the connection.
func (s *Store) Close(ctx context.Context) error {
	if s.conn == nil {
		return nil
	}
	return s.conn.Close(ctx)
}

// Node is one process start.
type Node struct {
	ID      uuid.UUID
	Home    uuid.UUID // the data folder that it alone holds
	Address string    // where its actors are reached; empty = nowhere
	Roles   []string
	Leaving bool
	Alive   bool // its lease has not run out
}

const tell = `select pg_notify('` + channel + `', '')`

// Whoever held this home before is gone, since we hold it now: its claims are free at once.
const buryPredecessors = `-- cluster.BuryPredecessors
delete from node where home = $1 and id <> $2 or expires_at < now() - interval '1 day'`

const nodeInsert = `-- cluster.NodeInsert
insert into node (id, home, address, roles, expires_at) values ($1, $2, $3, $4, now() + $5 * interval '1 millisecond')`

// Join makes the process known. It holds no shards yet.
func (s *Store) Join(ctx context.Context, n Node, ttl time.Duration) error {
	return s.batch(ctx, func(b *pgx.Batch) {
		b.Queue(buryPredecessors, n.Home, n.ID)
		b.Queue(nodeInsert, n.ID, n.Home, n.Address, n.Roles, ttl.Milliseconds())
		b.Queue(tell)
	})
}

// Orphans are shards that nobody alive owns, while somebody is there to take them.
const nodeBeat = `-- cluster.NodeBeat
with old as (select id, expires_at > now() as alive from node where id = $1 for no key update),
beat as (update node set expires_at = now() + $2 * interval '1 millisecond' from old where node.id = old.id),
renewed as (update shard set epoch = epoch + 1 from old where owner = $1 and not old.alive)
select alive, exists (select 1 from shard s where not exists (select 1 from node n where n.id = s.owner and n.expires_at > now())) from old`

// Beat is what a renewal found.
type Beat struct {
	Known   bool // false: the process was declared gone and must not go on
	Lapsed  bool // it had expired: whatever was claimed under the old epochs is not claimed any more
	Orphans bool // there are shards that no living process owns
	Fresh   bool // the connection is new
}

// Beat renews the process's row.
func (s *Store) Beat(ctx context.Context, ttl time.Duration) (out Beat, err error) {
	if err := s.connect(ctx); err != nil {
		return out, err
	}
	var alive bool
	switch err := s.conn.QueryRow(ctx, nodeBeat, s.node, ttl.Milliseconds()).Scan(&alive, &out.Orphans); {
	case pg.IsNoRows(err):
		return out, nil
	case err != nil:
		return out, err
	}
	out.Known, out.Lapsed, out.Fresh, s.fresh = true, !alive, s.fresh, false
	return out, nil
}

// Shard is who schedules a part of the organizations.
type Shard struct {
	Shard int16
	Owner uuid.UUID // zero = nobody
	Epoch int64
}

const nodesRead = `-- cluster.NodesRead
select id, home, address, roles, leaving, expires_at > now() from node`

const shardsRead = `-- cluster.ShardsRead
select shard, coalesce(owner, '00000000-0000-0000-0000-000000000000'), epoch from shard order by shard`

// View reads every process and every shard, at one moment.
func (s *Store) View(ctx context.Context) (nodes []Node, shards []Shard, err error) {
	err = s.batch(ctx, func(b *pgx.Batch) {
		b.Queue(nodesRead).Query(func(rows pgx.Rows) (err error) {
			nodes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (n Node, err error) {
				err = row.Scan(&n.ID, &n.Home, &n.Address, &n.Roles, &n.Leaving, &n.Alive)
				return n, err
			})
			return err
		})
		b.Queue(shardsRead).Query(func(rows pgx.Rows) (err error) {
			shards, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (x Shard, err error) {
				err = row.Scan(&x.Shard, &x.Owner, &x.Epoch)
				return x, err
			})
			return err
		})
	})
	return nodes, shards, err
}

const shardsTake = `-- cluster.ShardsTake
update shard set owner = $1, epoch = epoch + 1
where shard = any($2) and owner is distinct from $1 and not exists (select 1 from node n where n.id = shard.owner and n.expires_at > now())`

const shardsGive = `-- cluster.ShardsGive
update shard set owner = null where owner = $1 and shard = any($2)`

// Take makes the process the owner of those of the shards that no living process owns.
func (s *Store) Take(ctx context.Context, shards []int16) error {
	return s.batch(ctx, func(b *pgx.Batch) { b.Queue(shardsTake, s.node, shards); b.Queue(tell) })
}

// Give lets shards go.
func (s *Store) Give(ctx context.Context, shards []int16) error {
	return s.batch(ctx, func(b *pgx.Batch) { b.Queue(shardsGive, s.node, shards); b.Queue(tell) })
}

const nodeLeaving = `-- cluster.NodeLeaving
update node set leaving = true where id = $1`

const shardsFree = `-- cluster.ShardsFree
update shard set owner = null where owner = $1`

// Release gives every shard back for good; the process stays known for what it still has under way.
func (s *Store) Release(ctx context.Context) error {
	return s.batch(ctx, func(b *pgx.Batch) { b.Queue(nodeLeaving, s.node); b.Queue(shardsFree, s.node); b.Queue(tell) })
}

const nodeDelete = `-- cluster.NodeDelete
delete from node where id = $1`

// Leave gives everything back and forgets the process.
func (s *Store) Leave(ctx context.Context) error {
	return s.batch(ctx, func(b *pgx.Batch) { b.Queue(shardsFree, s.node); b.Queue(nodeDelete, s.node); b.Queue(tell) })
}

const lockIsFree = `-- cluster.LockIsFree
select pg_try_advisory_xact_lock(` + lockKey + `)`

// Locked tells whether a process holds its lock. Free proves little by itself: a lock is lost with its connection.
func (s *Store) Locked(ctx context.Context, node uuid.UUID) (bool, error) {
	if err := s.connect(ctx); err != nil {
		return true, err
	}
	free := false
	err := s.conn.QueryRow(ctx, lockIsFree, node).Scan(&free)
	return !free, err
}

// Bury forgets a process that was proved gone: what it was sending is looked up by others.
func (s *Store) Bury(ctx context.Context, node uuid.UUID) error {
	return s.batch(ctx, func(b *pgx.Batch) {
		b.Queue("-- cluster.Bury\ndelete from node where id = $1 and expires_at < now()", node)
		b.Queue(tell)
	})
}
