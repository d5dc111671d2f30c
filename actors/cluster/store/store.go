// Package store keeps the tables of running processes and of who schedules which shard. Only actors/cluster uses it.
package store

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/pg"
)

// Store reads and writes nodes and shards on a connection of its own, so that a busy pool never delays a heartbeat. The
// connection also listens for changes. A Store is not safe for concurrent use.
//
// Every call ends within the limit given to New, or within twice the limit if it has to connect first. A connection on
// which a call failed for any reason but an error of Postgres is dropped, and the next call makes a new one.
type Store struct {
	db    *pg.DB
	node  Node
	ttl   time.Duration
	limit time.Duration
	conn  *pgx.Conn
	fresh bool // the connection is new: notifications before it were not heard
}

// Node is one process start.
type Node struct {
	ID      uuid.UUID
	Home    uuid.UUID // the data folder that it alone holds
	Address string    // where its actors are reached; empty = nowhere
	Roles   []string
	Leaving bool // it takes no shards
}

// New makes a store for one process start, whose lease lasts for ttl from each Beat on; it connects when first used.
// limit is the longest that connecting, and every statement, may take.
func New(db *pg.DB, node Node, ttl, limit time.Duration) *Store {
	return &Store{db: db, node: node, ttl: ttl, limit: limit}
}

const channel = "crier_cluster"

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

// answered returns true when Postgres itself answered the call, with success or with an error.
func answered(err error) bool {
	var answer *pgconn.PgError
	return err == nil || errors.As(err, &answer)
}

// drop closes the connection without waiting for the server: it may never answer.
func (s *Store) drop() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.conn.Close(now) // what failed on it is reported by the caller
	s.conn = nil
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
	s.conn, s.fresh = conn, true
	b := &pgx.Batch{}
	b.Queue("listen " + channel)
	b.Queue(limitStatements, strconv.FormatInt(max(1, s.limit.Milliseconds()), 10))
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

// Wait returns true when another process notified of a change, false when ctx is over first. Without a connection it
// waits for ctx. A connection that died silently is not noticed here but by the next call, which is why a Beat must
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

const notify = `select pg_notify('` + channel + `', '')`

const nodesForget = `-- cluster.NodesForget
delete from node where home = $1 and id <> $2 or expires_at < now() - interval '1 day'`

// Forget deletes the rows of the processes that held this one's home before it, so that their shards are free at once,
// and of those whose lease ended a day ago. A process that comes back after that is known again with its next Beat.
func (s *Store) Forget(ctx context.Context) error {
	return s.batch(ctx, func(b *pgx.Batch) { b.Queue(nodesForget, s.node.Home, s.node.ID) })
}

// A process that is leaving ($4) gives its shards back. The others are notified when it comes, starts to leave or
// returns. Orphans are shards that no living process owns.
const nodeBeat = `-- cluster.NodeBeat
with old as (select expires_at > now() as alive, leaving from node where id = $1),
beat as (
  insert into node (id, home, address, roles, leaving, expires_at) values ($1, $6, $2, $3, $4, now() + $5 * interval '1 millisecond')
  on conflict (id) do update set leaving = excluded.leaving, expires_at = excluded.expires_at
), freed as (
  update shard set owner = null where owner = $1 and $4
)
select coalesce((select alive from old), false),
  exists (select from shard s where not exists (select from node n where n.id = s.owner and n.expires_at > now())),
  case when (select leaving from old) is distinct from $4 then pg_notify('` + channel + `', '') is null end`

// Beat is what a renewal found.
type Beat struct {
	Lapsed  bool // the lease had ended, or the process was not known: others may have taken its shards
	Orphans bool // there are shards that no living process owns
	Fresh   bool // the connection is new
}

// Beat renews the process's lease, or begins it. leaving gives all its shards back and keeps others from leaving some
// to it; it stays known for what it has under way. Beat may be repeated when no answer came. A connection that turns
// out to be dead is replaced within the same call.
func (s *Store) Beat(ctx context.Context, leaving bool) (out Beat, err error) {
	reused := s.conn != nil
	out, err = s.beat(ctx, leaving)
	if err != nil && reused && s.conn == nil && ctx.Err() == nil {
		out, err = s.beat(ctx, leaving)
	}
	return out, err
}

func (s *Store) beat(ctx context.Context, leaving bool) (out Beat, err error) {
	var alive bool
	n := s.node
	err = s.do(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		row := conn.QueryRow(ctx, nodeBeat, n.ID, n.Address, n.Roles, leaving, s.ttl.Milliseconds(), n.Home)
		return row.Scan(&alive, &out.Orphans, nil)
	})
	if err == nil {
		out.Lapsed, out.Fresh, s.fresh = !alive, s.fresh, false
	}
	return out, err
}

// Shard is who schedules a part of the organizations.
type Shard struct {
	Shard int16
	Owner uuid.UUID // zero = nobody
}

const nodesRead = `-- cluster.NodesRead
select id, home, address, roles, leaving from node where expires_at > now()`

const shardsRead = `-- cluster.ShardsRead
select shard, coalesce(owner, '00000000-0000-0000-0000-000000000000') from shard order by shard`

// View reads every process whose lease has not ended, and every shard.
func (s *Store) View(ctx context.Context) (nodes []Node, shards []Shard, err error) {
	err = s.batch(ctx, func(b *pgx.Batch) {
		b.Queue(nodesRead).Query(func(rows pgx.Rows) (err error) {
			nodes, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Node])
			return err
		})
		b.Queue(shardsRead).Query(func(rows pgx.Rows) (err error) {
			shards, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Shard])
			return err
		})
	})
	return nodes, shards, err
}

const shardsTake = `-- cluster.ShardsTake
update shard set owner = $1
where shard = any($2) and owner is distinct from $1 and not exists (select from node n where n.id = shard.owner and n.expires_at > now())`

const shardsGive = `-- cluster.ShardsGive
update shard set owner = null where owner = $1 and shard = any($2)`

// Take makes the process the owner of those of the shards that no living process owns.
func (s *Store) Take(ctx context.Context, shards []int16) error {
	return s.batch(ctx, func(b *pgx.Batch) { b.Queue(shardsTake, s.node.ID, shards); b.Queue(notify) })
}

// Give lets shards go.
func (s *Store) Give(ctx context.Context, shards []int16) error {
	return s.batch(ctx, func(b *pgx.Batch) { b.Queue(shardsGive, s.node.ID, shards); b.Queue(notify) })
}

const shardsFree = `-- cluster.ShardsFree
update shard set owner = null where owner = $1`

const nodeDelete = `-- cluster.NodeDelete
delete from node where id = $1`

// Leave gives every shard back and forgets the process.
func (s *Store) Leave(ctx context.Context) error {
	return s.batch(ctx, func(b *pgx.Batch) {
		b.Queue(shardsFree, s.node.ID)
		b.Queue(nodeDelete, s.node.ID)
		b.Queue(notify)
	})
}
