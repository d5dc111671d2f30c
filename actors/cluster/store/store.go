// Package store reads and writes two tables: node, which lists the running processes and their
// leases, and shard, which lists the shards' owners. Only actors/cluster uses this package.
package store

import (
	"context"
	_ "embed"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/pg"
)

// Store reads and writes nodes and shards over a dedicated connection, so that a busy pool never
// delays a heartbeat. Over the same connection, it receives notifications of changes. A Store is
// not safe for concurrent use.
//
// Every call returns within the limit given to New, or within twice the limit if it must connect
// first. If a call fails without a response from Postgres, the connection is dropped, and the next
// call opens a new one.
type Store struct {
	db    *pg.DB
	node  Node
	ttl   time.Duration
	limit time.Duration
	conn  *pgx.Conn
	fresh bool // the connection is new: earlier notifications were missed
}

// Node is one run of a process.
type Node struct {
	ID uuid.UUID `db:"id"`
	// Home is the id of the data folder that the process has locked.
	Home uuid.UUID `db:"home"`
	// Address is where other processes reach the node's actors, or empty if they cannot.
	Address string   `db:"address"`
	Roles   []string `db:"roles"`
	// Leaving means that the node takes no shards.
	Leaving bool `db:"leaving"`
}

// New returns a Store for the given node. The node's lease lasts for ttl after each Renew. The
// Store connects on first use. limit is the time limit for connecting and for each statement.
func New(db *pg.DB, node Node, ttl, limit time.Duration) *Store {
	return &Store{db: db, node: node, ttl: ttl, limit: limit}
}

const channel = "crier_cluster"

// The timeout makes the server cancel a statement when the client stops waiting for it, so that the
// statement's locks are released.
const limitStatements = `-- cluster.LimitStatements
select set_config('statement_timeout', $1, false)`

// call runs fn on the connection within the limit. It connects first if there is no connection.
func (s *Store) call(ctx context.Context, fn func(ctx context.Context, conn *pgx.Conn) error) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	err := fn(ctx, s.conn)
	if s.conn.IsClosed() || !answered(err) {
		s.drop()
	}
	return err
}

// answered reports whether Postgres itself responded to the call, with success or an error.
func answered(err error) bool {
	var answer *pgconn.PgError
	return err == nil || errors.As(err, &answer)
}

// drop closes the connection without waiting for the server, which may never respond.
func (s *Store) drop() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.conn.Close(now) // the caller reports the error that made the connection useless
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

// batch runs the queued statements as one transaction.
func (s *Store) batch(ctx context.Context, queue func(*pgx.Batch)) error {
	return s.call(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		b := &pgx.Batch{}
		queue(b)
		return conn.SendBatch(ctx, b).Close()
	})
}

// Wait returns true when a notification of a change arrives, and false if ctx ends first. If there
// is no connection, it waits until ctx ends. Wait cannot detect that the server has stopped
// responding. Renew can, so the caller must call Renew soon.
func (s *Store) Wait(ctx context.Context) bool {
	if s.conn == nil || s.conn.IsClosed() {
		<-ctx.Done()
		return false
	}
	_, err := s.conn.WaitForNotification(ctx)
	if err != nil && ctx.Err() == nil {
		<-ctx.Done() // the connection is lost; the next Renew opens another
	}
	return err == nil
}

// Close closes the connection, if there is one. It returns an error if closing fails or the server
// does not respond within the limit. The caller can ignore the error, because the server ends the
// session anyway.
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

// DeleteStale deletes the nodes that previously used this process's home, which frees their shards
// immediately. It also deletes nodes whose lease expired more than a day ago. If the process of a
// deleted node is still running, that process's next Renew inserts the node again.
//
// DeleteStale can be repeated. Like all methods below, it returns connection errors and Postgres
// errors.
func (s *Store) DeleteStale(ctx context.Context) error {
	return s.batch(ctx, func(b *pgx.Batch) { b.Queue(nodesForget, s.node.Home, s.node.ID) })
}

//go:embed sql/heartbeat.sql
var heartbeat string

// Renewal is the result of Renew. Each true field is a reason to call View again.
type Renewal struct {
	// Lapsed means that the lease had expired or the node had been deleted, so other nodes may have
	// taken its shards.
	Lapsed bool
	// Orphans means that some shards have no live owner.
	Orphans bool
	// Fresh means that the connection is new, so notifications may have been missed.
	Fresh bool
}

// Renew creates or renews the process's lease. If leaving is true, the process gives back all its
// shards, and other processes no longer reserve shards for it. Its node remains while posts are in
// flight.
//
// Renew can be repeated after an error. If an existing connection turns out to be dead, Renew
// replaces it within the same call.
func (s *Store) Renew(ctx context.Context, leaving bool) (Renewal, error) {
	reused := s.conn != nil
	out, err := s.renewOnce(ctx, leaving)
	if err != nil && reused && s.conn == nil && ctx.Err() == nil {
		return s.renewOnce(ctx, leaving)
	}
	return out, err
}

func (s *Store) renewOnce(ctx context.Context, leaving bool) (Renewal, error) {
	var alive bool
	var out Renewal
	n := s.node
	err := s.call(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		row := conn.QueryRow(ctx, heartbeat, n.ID, n.Address, n.Roles, leaving, s.ttl.Milliseconds(), n.Home)
		return row.Scan(&alive, &out.Orphans, nil)
	})
	if err != nil {
		return out, err
	}
	out.Lapsed, out.Fresh, s.fresh = !alive, s.fresh, false
	return out, nil
}

// Shard is a subset of the organizations, together with the node that schedules their posts.
type Shard struct {
	// Shard is the shard's number, from 0 to 255; see tenancy.Shard.
	Shard int16 `db:"shard"`
	// Owner is the id of a node, which might no longer be live. It is zero if the shard has no
	// owner.
	Owner uuid.UUID `db:"owner"`
}

const nodesRead = `-- cluster.NodesRead
select id, home, address, roles, leaving from node where expires_at > now()`

const shardsRead = `-- cluster.ShardsRead
select shard, coalesce(owner, '00000000-0000-0000-0000-000000000000') as owner from shard order by shard`

// View returns every node whose lease has not expired, and every shard, ordered by number. It
// returns connection errors and Postgres errors. If the database cannot be reached, pg.IsAway
// returns true for the error.
func (s *Store) View(ctx context.Context) (nodes []Node, shards []Shard, err error) {
	err = s.batch(ctx, func(b *pgx.Batch) {
		b.Queue(nodesRead).Query(func(rows pgx.Rows) (err error) {
			nodes, err = pgx.CollectRows(rows, pgx.RowToStructByName[Node])
			return err
		})
		b.Queue(shardsRead).Query(func(rows pgx.Rows) (err error) {
			shards, err = pgx.CollectRows(rows, pgx.RowToStructByName[Shard])
			return err
		})
	})
	return nodes, shards, err
}

const shardsTake = `-- cluster.ShardsTake
update shard set owner = $1
where shard = any($2) and owner is distinct from $1
  and not exists (select from node n where n.id = shard.owner and n.expires_at > now())`

const shardsGive = `-- cluster.ShardsGive
update shard set owner = null where owner = $1 and shard = any($2)`

// Take makes this process the owner of each given shard that has no live owner, and notifies the
// other processes. It returns connection errors and Postgres errors. If Take returns an error, call
// View to find out whether the shards were taken.
func (s *Store) Take(ctx context.Context, shards []int16) error {
	return s.batch(ctx, func(b *pgx.Batch) { b.Queue(shardsTake, s.node.ID, shards); b.Queue(notify) })
}

// Give gives back each given shard that this process owns, and notifies the other processes. It
// returns connection errors and Postgres errors. It can be repeated after an error.
func (s *Store) Give(ctx context.Context, shards []int16) error {
	return s.batch(ctx, func(b *pgx.Batch) { b.Queue(shardsGive, s.node.ID, shards); b.Queue(notify) })
}

const shardsFree = `-- cluster.ShardsFree
update shard set owner = null where owner = $1`

const nodeDelete = `-- cluster.NodeDelete
delete from node where id = $1`

// Leave gives back every shard, deletes the node and notifies the other processes. It returns
// connection errors and Postgres errors. It can be repeated after an error. If it never succeeds,
// other processes take the shards once the lease has expired.
func (s *Store) Leave(ctx context.Context) error {
	return s.batch(ctx, func(b *pgx.Batch) {
		b.Queue(shardsFree, s.node.ID)
		b.Queue(nodeDelete, s.node.ID)
		b.Queue(notify)
	})
}
