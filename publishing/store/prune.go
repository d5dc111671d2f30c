package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/pg"
)

// Prunable is a kind of row that is deleted after a while.
type Prunable string

// The kinds of rows that are deleted after a while.
const (
	PruneKeys     Prunable = "idempotency-keys"
	PruneEvents   Prunable = "events"        // of the timelines of posts that ended long ago
	PruneDeleted  Prunable = "deleted-posts" // whole groups, with all that belongs to them
	PruneConnects Prunable = "connects"      // that were not finished in time
)

// OldRow names a row that is old enough to be deleted. Of and ID are parts of its key.
type OldRow struct {
	At time.Time
	Of uuid.UUID // its organization, or its post
	ID string
}

// What is old is found by its time alone, after the row of $2 and $3: whether it may go is for the statement that
// deletes it, so that a row that cannot be judged stops no other. Each statement reads in the order of its index, since
// any number of rows may have the same time. Where it orders by an expression of a key, so does the index: by the key
// itself, the planner would take that index for finding a row by its key, and read it from end to end.
const (
	findOldKeys = `-- publishing.FindOldKeys
select i.created_at, i.org_id, i.key from idempotency i
where i.created_at < now() - $1 * interval '1 millisecond' and (i.created_at, i.key || '') > ($2::timestamptz, $3::text)
order by i.created_at, i.key || '' limit $4`

	findOldEvents = `-- publishing.FindOldEvents
select e.at, e.post_id, e.id::text from post_event e
where e.at < now() - $1 * interval '1 millisecond' and (e.at, e.id + 0) > ($2::timestamptz, coalesce(nullif($3::text, ''), '0')::bigint)
order by e.at, e.id + 0 limit $4`

	// One row for each group, its first post: only what follows another post has a delay, also when an edit dropped it.
	// Of a post that exists nothing is found, however much was dropped.
	findOldDeleted = `-- publishing.FindOldDeleted
select p.deleted_at, p.org_id, p.id::text from post p
where p.deleted_at < now() - $1 * interval '1 millisecond' and p.delay_minutes = 0
  and (p.deleted_at, p.id) > ($2::timestamptz, coalesce(nullif($3::text, ''), '00000000-0000-0000-0000-000000000000')::uuid)
order by p.deleted_at, p.id limit $4`

	findOldConnects = `-- publishing.FindOldConnects
select c.expires_at, c.org_id, encode(c.hash, 'hex') from connect_state c
where c.expires_at < now() - $1 * interval '1 millisecond' and (c.expires_at, encode(c.hash, 'hex')) > ($2::timestamptz, $3::text)
order by c.expires_at, encode(c.hash, 'hex') limit $4`
)

// FindOld lists at most limit rows of a kind that are older than an age, the oldest first, those after another one.
// Not all of them may be deleted; see Prune.
func (s *Store) FindOld(ctx context.Context, kind Prunable, age time.Duration, after OldRow, limit int) (rows []OldRow, err error) {
	sql := map[Prunable]string{
		PruneKeys: findOldKeys, PruneEvents: findOldEvents, PruneDeleted: findOldDeleted, PruneConnects: findOldConnects,
	}[kind]
	err = s.db.WriteRole(ctx, pg.Retention, func(b *pgx.Batch) {
		b.Queue(sql, age.Milliseconds(), after.At, after.ID, limit).Query(func(found pgx.Rows) (err error) {
			rows, err = pgx.CollectRows(found, pgx.RowToStructByPos[OldRow])
			return err
		})
	})
	return rows, err
}

//go:embed sql/prune_keys.sql
var pruneKeys string

//go:embed sql/prune_events.sql
var pruneEvents string

//go:embed sql/prune_deleted.sql
var pruneDeleted string

const pruneConnects = `-- publishing.PruneConnects
with old as (
  select c.hash from unnest($1::uuid[], $2::text[]) u(org, hash) join connect_state c on c.hash = any (array[decode(u.hash, 'hex')]) and (c.org_id = u.org) is true
  where (c.expires_at < now() - $3 * interval '1 millisecond') is true order by u.hash for update of c skip locked
)
delete from connect_state c using old where c.hash = any (array[old.hash])`

// Prune deletes those of the rows of a kind that are older than an age and that nothing needs any more, in one
// statement, and returns how many. What somebody else has locked is left out. A deleted post goes with its group: when
// more posts were deleted than asked for, there may be more of their groups.
func (s *Store) Prune(ctx context.Context, kind Prunable, age time.Duration, rows []OldRow) (n int, err error) {
	sql := map[Prunable]string{
		PruneKeys: pruneKeys, PruneEvents: pruneEvents, PruneDeleted: pruneDeleted, PruneConnects: pruneConnects,
	}[kind]
	of, ids := make([][16]byte, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		of[i], ids[i] = r.Of, r.ID
	}
	err = s.db.WriteRole(ctx, pg.Retention, func(b *pgx.Batch) {
		b.Queue(sql, of, ids, age.Milliseconds()).Exec(func(tag pgconn.CommandTag) error {
			n = int(tag.RowsAffected())
			return nil
		})
	})
	return n, err
}
