package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
)

// Dead looks for the traces of processes that have died, and deletes them. It uses the pool and never the connection of
// a heartbeat. It is safe for concurrent use.
type Dead struct {
	db    *pg.DB
	limit time.Duration
}

// NewDead makes a Dead. limit is the longest that a call may take.
func NewDead(db *pg.DB, limit time.Duration) *Dead { return &Dead{db: db, limit: limit} }

// Both lock conditions take the lock until the statement ends, which a living process excludes by holding it in shared
// mode.
var nodesUnlocked = `-- cluster.NodesUnlocked
select id from unnest($1::uuid[]) id where pg_try_advisory_xact_lock(` + fmt.Sprintf(lockKey, "id") + `)`

var nodesForget = `-- cluster.NodesForget
with unlocked as materialized ( -- a process may have come back since it was looked for
  select id from unnest($1::uuid[]) id where pg_try_advisory_xact_lock(` + fmt.Sprintf(lockKey, "id") + `)
)
delete from node n using unlocked u where n.id = u.id and n.expires_at < now() returning n.id`

// Unlocked returns those of the processes whose lock nobody holds. That proves little by itself: a lock is lost with
// its connection.
func (d *Dead) Unlocked(ctx context.Context, nodes []uuid.UUID) ([]uuid.UUID, error) {
	return d.ids(ctx, nodesUnlocked, nodes, func(*pgx.Batch) {})
}

// Forget deletes the processes that were proved dead, unless they have come back, and tells the others. It returns
// which were deleted: what they were sending is looked up by others from then on.
func (d *Dead) Forget(ctx context.Context, nodes []uuid.UUID) ([]uuid.UUID, error) {
	return d.ids(ctx, nodesForget, nodes, func(b *pgx.Batch) { b.Queue(tell) })
}

// ids runs a statement that takes and returns ids, and what then adds to it, in one transaction.
func (d *Dead) ids(
	ctx context.Context, statement string, nodes []uuid.UUID, then func(*pgx.Batch),
) (out []uuid.UUID, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	err = d.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(statement, nodes).Query(func(rows pgx.Rows) (err error) {
			out, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			return err
		})
		then(b)
	})
	return out, err
}
