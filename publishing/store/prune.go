package store

import (
	"context"
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

// A key stays while a repeat of its request must find the post: until every post of the request has ended, and has
// stood so for as long as a key is kept. A repeated post ends with its series.
const pruneKeys = `-- publishing.PruneKeys
with old as (
  select i.org_id, i.key from unnest($1::uuid[], $2::text[]) u(org, key) join idempotency i on i.org_id = any (array[u.org]) and i.key = u.key
  where (i.created_at < now() - $3 * interval '1 millisecond') is true and not exists (
    select from unnest(array(select (b ->> 'postId')::uuid from jsonb_array_elements(i.body) b)) a(post) join post p on p.id = any (array[a.post]) and (p.org_id = i.org_id) is true
    join post g on g.group_id = any (array[p.group_id]) and (g.org_id = p.org_id) is true
    where g.updated_at >= now() - $3 * interval '1 millisecond' or g.state in ('PUBLISHING', 'UNKNOWN')
      or g.deleted_at is null and (g.state not in ('PUBLISHED', 'ERROR')
        or exists (select from series s where s.org_id = any (array[g.org_id]) and s.id = g.series_id and s.stopped_at is null)))
  order by u.org, u.key for update of i skip locked
)
delete from idempotency i using old where i.org_id = any (array[old.org_id]) and i.key = old.key`

// The timeline of a post that may have been sent, or that has not ended, stays whole.
const pruneEvents = `-- publishing.PruneEvents
with old as (
  select e.post_id, e.id from unnest($1::uuid[], $2::text[]) u(post, id)
  join post_event e on e.post_id = any (array[u.post]) and e.id = u.id::bigint
  join post p on p.id = any (array[e.post_id]) and (p.org_id = e.org_id) is true
  where (e.at < now() - $3 * interval '1 millisecond') is true and p.updated_at < now() - $3 * interval '1 millisecond' and not p.maybe_sent
    and (p.state in ('PUBLISHED', 'ERROR') or p.deleted_at is not null and p.state not in ('PUBLISHING', 'UNKNOWN')) is true
  order by u.post, u.id for update of e skip locked
)
delete from post_event e using old where e.post_id = any (array[old.post_id]) and e.id = old.id`

// settled is true of a post p that nothing will ever need again. Deleted for long enough, and:
//   - no call for it is under way or unaccounted for;
//   - it is not in the template of a series that goes on;
//   - an occurrence of a series is behind the current one, whose number is then the highest: no number is used a
//     second time; or the series has stopped and all of its occurrences are deleted.
const settled = `(p.deleted_at < now() - $3 * interval '1 millisecond') is true and not p.maybe_sent and (p.state in ('PUBLISHING', 'UNKNOWN')) is false
  and not exists (select from publication x where x.post_id = any (array[p.id]) and (x.phase = 'committing' or x.maybe_sent and x.phase <> 'done') offset 0)
  and not exists (select from series s where s.template = any (array[p.group_id]) and (s.org_id = p.org_id) is true and s.stopped_at is null offset 0)
  and (p.series_id is null or exists (select from series s where s.org_id = any (array[p.org_id]) and s.id = p.series_id
    and (p.series_passed and p.occurrence < s.number or s.stopped_at is not null and not exists (
      select from post o where o.org_id = any (array[s.org_id]) and o.series_id = s.id and o.deleted_at is null)) offset 0))`

// Posts go by whole groups: what an edit replaced may still be at its platform, and its release ids stay as long as
// the post. A group of which any post is not settled is left out before anything of it is locked; what is settled
// stays so. Of the others at most 2000 posts go: those first that an edit dropped, which no other post names, and then
// all the rest of a group at once. The time of the statement is linear in the posts of the groups, so a group of which
// more than some 500,000 posts were dropped may never be deleted.
const pruneDeleted = `-- publishing.PruneDeleted
with asked as (
  select p.org_id, p.group_id from unnest($1::uuid[], $2::text[]) u(org, id)
  join post p on p.id = any (array[u.id::uuid]) and (p.org_id = u.org) is true
), member as (
  select p.group_id, p.id, p.after_post is null and p.delay_minutes > 0 as dropped, ` + settled + ` as settled
  from asked a join post p on p.group_id = any (array[a.group_id]) and (p.org_id = a.org_id) is true
), locked as (
  select m.group_id, m.id, m.dropped from member m join post p on p.id = any (array[m.id])
  where m.group_id not in (select group_id from member where not settled)
  order by m.dropped desc, m.group_id limit 2000 for update of p skip locked
)
delete from post p using locked l where p.id = any (array[l.id])
  and (l.dropped or l.group_id not in (select group_id from member where id not in (select id from locked)))`

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
