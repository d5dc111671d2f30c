package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/pg"
	"crier/publishing/db"
)

// Prunable is a kind of row that is deleted after its retention period. FindOld finds such rows,
// and Prune deletes them.
type Prunable string

const (
	// PruneKeys are idempotency keys. A key stays until all posts created with it have ended.
	PruneKeys Prunable = "idempotency-keys"
	// PruneEvents are the timelines of posts that have ended.
	PruneEvents Prunable = "events"
	// PruneDeleted are groups of deleted posts, with everything that belongs to them.
	PruneDeleted Prunable = "deleted-posts"
	// PruneConnects are expired attempts to connect a channel.
	PruneConnects Prunable = "connects"
	// PruneUploads are upload addresses, whether a file was uploaded or not.
	PruneUploads Prunable = "upload-addresses"
	// PruneDeliveries are webhook deliveries.
	PruneDeliveries Prunable = "webhook-deliveries"
	// PruneSecrets are former webhook secrets that no longer sign deliveries.
	PruneSecrets Prunable = "webhook-secrets"
	// PruneFigures are the daily metrics of channels and posts.
	PruneFigures Prunable = "analytics"
	// PruneNotifications are the notifications that the web app lists.
	PruneNotifications Prunable = "notifications"
)

// OldRow identifies a row that is old enough to be deleted. Of and ID are parts of the row's key.
type OldRow struct {
	// At is the time from which the row's age is measured.
	At time.Time `db:"at"`
	// Of is the row's organization or, for an event, its post.
	Of uuid.UUID `db:"of"`
	ID string    `db:"id"`
}

// These statements find old rows only by their time, starting after the row given by $2 and $3. The
// statement that deletes a row checks whether it may be deleted. If that check fails with an error
// for one row, the other rows can still be deleted. Each statement reads in index order, because
// any number of rows can have the same time.
//
// Some statements and their indexes are ordered by an expression on a key instead of the key
// itself. If such an index contained the key itself, the planner would use the index to look up a
// row by key, and would read the whole index.
const (
	findOldKeys = `-- publishing.FindOldKeys
select i.created_at as at, i.org_id as of, i.key as id from idempotency i
where i.created_at < now() - $1 * interval '1 millisecond'
  and (i.created_at, i.key || '') > ($2::timestamptz, $3::text)
order by i.created_at, i.key || '' limit $4`

	findOldEvents = `-- publishing.FindOldEvents
select e.at, e.post_id as of, e.id::text as id from post_event e
where e.at < now() - $1 * interval '1 millisecond'
  and (e.at, e.id + 0) > ($2::timestamptz, coalesce(nullif($3::text, ''), '0')::bigint)
order by e.at, e.id + 0 limit $4`

	// This statement finds one row per group, which is the group's first post. All other posts of a
	// group have a delay, even posts that were removed by an edit. Until the first post is deleted,
	// nothing is found for the group, no matter how many other posts were removed.
	findOldDeleted = `-- publishing.FindOldDeleted
select p.deleted_at as at, p.org_id as of, p.id::text as id from post p
where p.deleted_at < now() - $1 * interval '1 millisecond' and p.delay_minutes = 0
  and (p.deleted_at, p.id)
    > ($2::timestamptz, coalesce(nullif($3::text, ''), '00000000-0000-0000-0000-000000000000')::uuid)
order by p.deleted_at, p.id limit $4`

	findOldConnects = `-- publishing.FindOldConnects
select c.expires_at as at, c.org_id as of, encode(c.hash, 'hex') as id from connect_state c
where c.expires_at < now() - $1 * interval '1 millisecond'
  and (c.expires_at, encode(c.hash, 'hex')) > ($2::timestamptz, $3::text)
order by c.expires_at, encode(c.hash, 'hex') limit $4`

	findOldUploads = `-- publishing.FindOldUploads
select a.expires_at as at, a.org_id as of, encode(a.hash, 'hex') as id from upload_address a
where a.expires_at < now() - $1 * interval '1 millisecond'
  and (a.expires_at, encode(a.hash, 'hex')) > ($2::timestamptz, $3::text)
order by a.expires_at, encode(a.hash, 'hex') limit $4`

	findOldDeliveries = `-- publishing.FindOldDeliveries
select d.created_at as at, d.org_id as of, d.id::text as id from webhook_delivery d
where d.created_at < now() - $1 * interval '1 millisecond' and (d.created_at, d.id::text) > ($2::timestamptz, $3::text)
order by d.created_at, d.id::text limit $4`

	findOldSecrets = `-- publishing.FindOldSecrets
select k.ends_at as at, k.org_id as of, k.id::text as id from webhook_old_key k
where k.ends_at < now() - $1 * interval '1 millisecond' and (k.ends_at, k.id::text) > ($2::timestamptz, $3::text)
order by k.ends_at, k.id::text limit $4`

	findOldFigures = `-- publishing.FindOldFigures
select d.day::timestamp at time zone 'UTC' as at, d.org_id as of, d.subject::text as id from insight_day d
where d.day < (now() at time zone 'UTC' - $1 * interval '1 millisecond')::date
  and (d.day, d.subject::text) > (($2::timestamptz at time zone 'UTC')::date, $3::text)
order by d.day, d.subject::text limit $4`

	findOldNotifications = `-- publishing.FindOldNotifications
select n.last_at as at, n.org_id as of, n.id::text as id from notification n
where n.last_at < now() - $1 * interval '1 millisecond' and (n.last_at, n.id::text) > ($2::timestamptz, $3::text)
order by n.last_at, n.id::text limit $4`
)

// FindOld returns at most limit rows of a kind that are older than age, oldest first, starting
// after the given row. If after is zero, it starts with the oldest row. Some of the rows may still
// be needed; see Prune. Any error is a Postgres error.
func FindOld(
	ctx context.Context, d *db.DB, kind Prunable, age time.Duration, after OldRow, limit int,
) (rows []OldRow, err error) {
	sql := map[Prunable]string{
		PruneKeys: findOldKeys, PruneEvents: findOldEvents,
		PruneDeleted: findOldDeleted, PruneConnects: findOldConnects, PruneDeliveries: findOldDeliveries,
		PruneSecrets: findOldSecrets, PruneUploads: findOldUploads,
		PruneFigures: findOldFigures, PruneNotifications: findOldNotifications,
	}[kind]
	err = d.WriteRole(ctx, pg.Retention, func(b *pgx.Batch) {
		b.Queue(sql, age.Milliseconds(), after.At, after.ID, limit).Query(db.Into(&rows, pgx.RowToStructByName[OldRow]))
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
  select c.hash from unnest($1::uuid[], $2::text[]) u(org, hash)
  join connect_state c on c.hash = any (array[decode(u.hash, 'hex')]) and (c.org_id = u.org) is true
  where (c.expires_at < now() - $3 * interval '1 millisecond') is true
  order by u.hash for update of c skip locked
)
delete from connect_state c using old where c.hash = any (array[old.hash])`

const pruneUploads = `-- publishing.PruneUploads
with old as (
  select a.hash from unnest($1::uuid[], $2::text[]) u(org, hash)
  join upload_address a on a.hash = any (array[decode(u.hash, 'hex')]) and (a.org_id = u.org) is true
  where (a.expires_at < now() - $3 * interval '1 millisecond') is true
  order by u.hash for update of a skip locked
)
delete from upload_address a using old where a.hash = any (array[old.hash])`

const pruneDeliveries = `-- publishing.PruneDeliveries
with old as (
  select d.org_id, d.id from unnest($1::uuid[], $2::text[]) u(org, id)
  join webhook_delivery d on d.org_id = any (array[u.org]) and d.id = any (array[u.id::uuid])
  where (d.created_at < now() - $3 * interval '1 millisecond') is true
  order by u.id for update of d skip locked
)
delete from webhook_delivery d using old where d.org_id = any (array[old.org_id]) and d.id = any (array[old.id])`

const pruneSecrets = `-- publishing.PruneSecrets
with old as (
  select k.org_id, k.id from unnest($1::uuid[], $2::text[]) u(org, id)
  join webhook_old_key k on k.org_id = any (array[u.org]) and k.id = any (array[u.id::uuid])
  where (k.ends_at < now() - $3 * interval '1 millisecond') is true
  order by u.id for update of k skip locked
)
delete from webhook_old_key k using old where k.org_id = any (array[old.org_id]) and k.id = any (array[old.id])`

// $4 holds the days of the rows, because a subject has one row per day.
const pruneFigures = `-- publishing.PruneFigures
with old as (
  select d.org_id, d.subject, d.day from unnest($1::uuid[], $2::text[], $4::timestamptz[]) u(org, subject, at)
  join insight_day d on d.org_id = any (array[u.org]) and d.subject = any (array[u.subject::uuid])
    and d.day = any (array[(u.at at time zone 'UTC')::date])
  where (d.day < (now() at time zone 'UTC' - $3 * interval '1 millisecond')::date) is true
  order by u.subject, u.at for update of d skip locked
)
delete from insight_day d using old
where d.org_id = any (array[old.org_id]) and d.subject = any (array[old.subject]) and d.day = any (array[old.day])`

const pruneNotifications = `-- publishing.PruneNotifications
with old as (
  select n.org_id, n.id from unnest($1::uuid[], $2::text[]) u(org, id)
  join notification n on n.org_id = any (array[u.org]) and n.id = any (array[u.id::uuid])
  where (n.last_at < now() - $3 * interval '1 millisecond') is true
  order by u.id for update of n skip locked
)
delete from notification n using old where n.org_id = any (array[old.org_id]) and n.id = any (array[old.id])`

// Prune deletes the given rows in one statement and returns the number of deleted rows. It skips
// rows that are newer than age, still needed, or locked by another transaction. If Postgres rejects
// the deletion of one row, Prune deletes nothing and returns the error; see batch.Sweep.
//
// A deleted post is pruned together with its group. In that case, the result counts all posts in
// the groups, so it can exceed the number of given rows.
func Prune(ctx context.Context, d *db.DB, kind Prunable, age time.Duration, rows []OldRow) (n int, err error) {
	sql := map[Prunable]string{
		PruneKeys: pruneKeys, PruneEvents: pruneEvents, PruneDeleted: pruneDeleted, PruneConnects: pruneConnects,
		PruneDeliveries: pruneDeliveries, PruneSecrets: pruneSecrets, PruneFigures: pruneFigures,
		PruneNotifications: pruneNotifications, PruneUploads: pruneUploads,
	}[kind]
	of, ids, at := make([][16]byte, len(rows)), make([]string, len(rows)), make([]time.Time, len(rows))
	for i, r := range rows {
		of[i], ids[i], at[i] = r.Of, r.ID, r.At
	}
	args := []any{of, ids, age.Milliseconds()}
	if kind == PruneFigures {
		args = append(args, at)
	}
	err = d.WriteRole(ctx, pg.Retention, func(b *pgx.Batch) {
		b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
			n = int(tag.RowsAffected())
			return nil
		})
	})
	return n, err
}
