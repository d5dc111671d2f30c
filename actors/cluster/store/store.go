// Package store keeps the tables of running processes and of who schedules which shard. Only actors/cluster uses it.
package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/pg"
)

// Store reads and writes nodes and shards on a connection of its own, so that a busy pool never delays a heartbeat. The
// connection also listens for changes and holds the advisory lock that proves that its process lives. A Store is not
// safe for concurrent use.
//
// Every call ends within the limit given to New, or within twice the limit if it has to connect first. A connection on
// which a call failed for any reason but an error of Postgres is dropped, and the next call makes a new one.
type Store struct {
	db     *pg.DB
	node   uuid.UUID
	limit  time.Duration
	conn   *pgx.Conn
	locked bool // this connection holds the process's advisory lock
	fresh  bool // the connection is new: notifications before it were not heard
}

// New makes a store for one process start; it connects when first used. limit is the longest that connecting, and every
// statement, may take.
func New(db *pg.DB, node uuid.UUID, limit time.Duration) *Store {
	return &Store{db: db, node: node, limit: limit}
}

const channel = "crier_cluster"

// A process holds its lock in shared mode, so that its next connection gets it even while Postgres still keeps a dead
// one open. While the lock is held, the process lives. The reverse is not true: a lock is lost with its connection.
const lockKey = `hashtextextended('crier node ' || %s::uuid::text, 0)`

var lockTake = "-- cluster.LockTake\nselect pg_try_advisory_lock_shared(" + fmt.Sprintf(lockKey, "$1") + ")"

// The server gives up a statement when the client does, so that it does not keep its locks.
const limitStatements = `-- cluster.LimitStatements
select set_config('statement_timeout', $1, false)`

// do runs one call on the connection within the limit, after connecting if need be.
func (s *Store) do(ctx context.Context, call func(ctx context.Context, conn *pgx.Conn) error) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	err := call(ctx, s.conn)
	if s.conn.IsClosed() || !answered(err) {
		s.drop()
	}
	return err
}

// answered tells whether Postgres itself answered the call, with success or with an error.
func answered(err error) bool {
	var answer *pgconn.PgError
	return err == nil || pg.IsNoRows(err) || errors.As(err, &answer)
}

// drop closes the connection without waiting for the server: it may never answer.
func (s *Store) drop() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.conn.Close(now) // what failed on it is reported by the caller
	s.conn, s.locked = nil, false
}

func (s *Store) connect(ctx context.Context) error {
	if s.conn != nil && s.conn.IsClosed() {
		s.drop()
	}
	if s.conn != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	conn, err := s.db.Direct(ctx, pg.Clock)
	if err != nil {
		return err
	}
	s.conn, s.locked, s.fresh = conn, false, true
	b := &pgx.Batch{}
	b.Queue("listen " + channel)
	b.Queue(limitStatements, strconv.FormatInt(max(1, s.limit.Milliseconds()), 10))
	b.Queue(lockTake, s.node).QueryRow(func(row pgx.Row) error { return row.Scan(&s.locked) })
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		s.drop()
		return err
	}
	return nil
}

func (s *Store) batch(ctx context.Context, queue func(*pgx.Batch)) error {
	return s.do(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		b := &pgx.Batch{}
		queue(b)
		return conn.SendBatch(ctx, b).Close()
	})
}

// Wait returns true when another process told of a change, false when ctx is over first. Without a connection it waits
// for ctx. A connection that died without a word is not noticed here but by the next call, which is why a Beat must
// follow soon.
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
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
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
insert into node (id, home, address, roles, expires_at) values ($1, $2, $3, $4, now() + $5 * interval '1 millisecond')
on conflict (id) do update set expires_at = excluded.expires_at`

// Join makes the process known. It holds no shards yet. It may be repeated when no answer came.
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
beat as (update node set expires_at = now() + $2 * interval '1 millisecond' from old where node.id = old.id)
select alive, exists (select 1 from shard s where not exists (select 1 from node n where n.id = s.owner and n.expires_at > now())) from old`

// Beat is what a renewal found.
type Beat struct {
	Known   bool // false: the process was declared gone and must not go on
	Lapsed  bool // it had expired, and others may have taken its shards
	Orphans bool // there are shards that no living process owns
	Fresh   bool // the connection is new
}

// Beat renews the process's row. A connection that turns out to be dead is replaced within the same call.
func (s *Store) Beat(ctx context.Context, ttl time.Duration) (out Beat, err error) {
	reused := s.conn != nil
	out, err = s.beat(ctx, ttl)
	if err != nil && reused && s.conn == nil && ctx.Err() == nil {
		out, err = s.beat(ctx, ttl)
	}
	return out, err
}

func (s *Store) beat(ctx context.Context, ttl time.Duration) (out Beat, err error) {
	var alive bool
	err = s.do(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		err := conn.QueryRow(ctx, nodeBeat, s.node, ttl.Milliseconds()).Scan(&alive, &out.Orphans)
		if err != nil || s.locked {
			return err
		}
		return conn.QueryRow(ctx, lockTake, s.node).Scan(&s.locked)
	})
	if pg.IsNoRows(err) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.Known, out.Lapsed, out.Fresh, s.fresh = true, !alive, s.fresh, false
	return out, nil
}

// Shard is who schedules a part of the organizations.
type Shard struct {
	Shard int16
	Owner uuid.UUID // zero = nobody
}

const nodesRead = `-- cluster.NodesRead
select id, home, address, roles, leaving, expires_at > now() from node`

const shardsRead = `-- cluster.ShardsRead
select shard, coalesce(owner, '00000000-0000-0000-0000-000000000000') from shard order by shard`

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
				err = row.Scan(&x.Shard, &x.Owner)
				return x, err
			})
			return err
		})
	})
	return nodes, shards, err
}

const shardsTake = `-- cluster.ShardsTake
update shard set owner = $1
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

// Release gives every shard back and marks the process as leaving, so that nobody leaves shards to it; it stays known
// for what it has under way.
func (s *Store) Release(ctx context.Context) error {
	return s.batch(ctx, func(b *pgx.Batch) { b.Queue(nodeLeaving, s.node); b.Queue(shardsFree, s.node); b.Queue(tell) })
}

const nodeReturn = `-- cluster.NodeReturn
update node set leaving = false where id = $1`

// Return takes the mark of Release back: the process may have shards again.
func (s *Store) Return(ctx context.Context) error {
	return s.batch(ctx, func(b *pgx.Batch) { b.Queue(nodeReturn, s.node); b.Queue(tell) })
}

const nodeDelete = `-- cluster.NodeDelete
delete from node where id = $1`

// Leave gives everything back and forgets the process.
func (s *Store) Leave(ctx context.Context) error {
	return s.batch(ctx, func(b *pgx.Batch) { b.Queue(shardsFree, s.node); b.Queue(nodeDelete, s.node); b.Queue(tell) })
}
