// Package store keeps the tables of running processes and of who schedules which shard. Only actors/cluster uses it.
package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
)

// Store reads and writes nodes and shards on a connection of its own, so that a busy pool never delays a beat.
type Store struct {
	db   *pg.DB
	conn *pgx.Conn
}

// New makes a store; it connects when first used. It is not safe for concurrent use.
func New(db *pg.DB) *Store { return &Store{db: db} }

func (s *Store) connect(ctx context.Context) (err error) {
	if s.conn == nil || s.conn.IsClosed() {
		s.conn, err = s.db.Direct(ctx, pg.Clock)
	}
	return err
}

func (s *Store) in(ctx context.Context, fn func(pgx.Tx) error) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, s.conn, fn)
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
	Address string
	Roles   []string
}

// Whoever held this home before is gone, since we hold it now: its claims are free at once.
const buryPredecessors = `-- cluster.BuryPredecessors
delete from node where home = $1 and id <> $2 or expires_at < now() - interval '1 day'`

const nodeInsert = `-- cluster.NodeInsert
insert into node (id, home, address, roles, expires_at) values ($1, $2, $3, $4, now() + $5 * interval '1 millisecond')`

// Join makes the process known. It holds no shards yet.
func (s *Store) Join(ctx context.Context, n Node, ttl time.Duration) error {
	return s.in(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, buryPredecessors, n.Home, n.ID); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, nodeInsert, n.ID, n.Home, n.Address, n.Roles, ttl.Milliseconds())
		return err
	})
}

const nodeBeat = `-- cluster.NodeBeat
with old as (select id, expires_at > now() as alive from node where id = $1 for no key update),
beat as (update node set expires_at = now() + $2 * interval '1 millisecond' from old where node.id = old.id),
renewed as (update shard set epoch = epoch + 1 from old where owner = $1 and not old.alive)
select alive from old`

const shardsTake = `-- cluster.ShardsTake
update shard set owner = $1, epoch = epoch + 1
where owner is distinct from $1 and not exists (select 1 from node n where n.id = shard.owner and n.expires_at > now())`

const shardsHeld = `-- cluster.ShardsHeld
select shard, epoch from shard where owner = $1 order by shard`

// Held is what a process holds.
type Held struct {
	Shards []int16
	Epochs []int64
}

// Beat renews the process's row; false means that it was declared gone and must not go on. A row that had expired is renewed with new epochs: whatever was claimed under the old ones is not claimed any more.
func (s *Store) Beat(ctx context.Context, node uuid.UUID, ttl time.Duration) (known, lapsed bool, err error) {
	if err := s.connect(ctx); err != nil {
		return false, false, err
	}
	var alive bool
	switch err := s.conn.QueryRow(ctx, nodeBeat, node, ttl.Milliseconds()).Scan(&alive); {
	case pg.IsNoRows(err):
		return false, false, nil
	case err != nil:
		return false, false, err
	}
	return true, !alive, nil
}

// Acquire takes every shard that no living process owns, and tells what is held now.
func (s *Store) Acquire(ctx context.Context, node uuid.UUID) (h Held, err error) {
	err = s.in(ctx, func(tx pgx.Tx) error {
		h = Held{}
		if _, err := tx.Exec(ctx, shardsTake, node); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, shardsHeld, node)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var shard int16
			var epoch int64
			if err := rows.Scan(&shard, &epoch); err != nil {
				return err
			}
			h.Shards, h.Epochs = append(h.Shards, shard), append(h.Epochs, epoch)
		}
		return rows.Err()
	})
	return h, err
}

const shardsFree = `-- cluster.ShardsFree
update shard set owner = null where owner = $1`

const nodeDelete = `-- cluster.NodeDelete
delete from node where id = $1`

// Leave gives everything back.
func (s *Store) Leave(ctx context.Context, node uuid.UUID) error {
	return s.in(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, shardsFree, node); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, nodeDelete, node)
		return err
	})
}
