package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
)

// Upkeep is a kind of periodic work on posts. Each kind takes two steps. First, Find lists the
// posts that need the work, without locking them. Then, Do changes these posts by id in one
// statement, which checks each post again. If Postgres rejects the change to one post, that post
// can therefore be skipped without blocking the others.
type Upkeep string

// The kinds of upkeep.
const (
	// UpkeepReap ends claims that have expired or whose process no longer exists.
	UpkeepReap Upkeep = "reap"
	// UpkeepExpire abandons queued posts that are too late to be published.
	UpkeepExpire Upkeep = "expire"
	// UpkeepStuck abandons posts whose claims are extended repeatedly but do not reach the
	// irreversible call.
	UpkeepStuck Upkeep = "stuck"
	// UpkeepOrphans abandons followers whose predecessor has ended.
	UpkeepOrphans Upkeep = "orphans"
)

// MaxUpkeep is the largest limit that callers may pass to Find. It is therefore also the largest
// number of posts that they may pass to Do. Neither function enforces the limit.
const MaxUpkeep = 1000

// held selects the shards in $1 that are owned by the process $2. It selects none if that process's
// lease has expired.
const held = `select s.shard from shard s
  where s.shard = any ($1::smallint[]) and s.owner = $2
    and exists (select from node n where n.id = $2 and n.expires_at > clock_timestamp())`

// mine is the condition that a post's shard is selected by held.
const mine = `p.shard = any (array(` + held + `))`

// Conditions for the kinds of upkeep. $3 is the age in milliseconds, and $4 lists the posts to
// skip.
const (
	reapable = `p.state = 'PUBLISHING'
  and (p.claim_until < now() or not exists (select from node n where n.id = p.claim_holder))`
	lapsed    = `p.state = 'QUEUE' and p.deleted_at is null and p.due < now() - $3 * interval '1 millisecond'`
	stuck     = `p.state = 'PUBLISHING' and p.phase = 'preparing' and p.updated_at < now() - $3 * interval '1 millisecond'`
	orphaned  = `p.state = 'WAITING' and p.deleted_at is null and p.updated_at < now() - $3 * interval '1 millisecond'`
	isLeftOut = `p.id <> all ($4::uuid[])`
)

const findReap = `-- publishing.FindReap
select p.id from post p
where ` + mine + ` and ` + reapable + ` and $3::bigint >= 0 and ` + isLeftOut + `
order by p.claim_until, p.id limit $5`

// findExpire reads each shard separately in index order, so that it reads at most $5 posts per
// shard.
const findExpire = `-- publishing.FindExpire
select x.id from (` + held + `) h cross join lateral (
  select p.id, p.due from post p
  where p.shard = h.shard and ` + lapsed + ` and ` + isLeftOut + `
  order by p.due limit $5) x
order by x.due, x.id limit $5`

const findStuck = `-- publishing.FindStuck
select p.id from post p
where ` + mine + ` and ` + stuck + ` and ` + isLeftOut + `
order by p.updated_at, p.id limit $5`

// findOrphans skips followers whose own publish date is too recent for them to be orphaned.
const findOrphans = `-- publishing.FindOrphans
select p.id from post p
left join post b on b.id = any (array[p.after_post]) and (b.org_id = p.org_id) is true
where ` + mine + ` and ` + orphaned + `
  and p.publish_date at time zone 'UTC' < (now() - $3 * interval '1 millisecond') at time zone 'UTC'
  and ` + isLeftOut + `
  and (b.id is null or b.deleted_at is not null or b.state in ('PUBLISHED', 'ERROR'))
  and coalesce(b.updated_at, p.updated_at) < now() - $3 * interval '1 millisecond'
order by p.updated_at, p.id limit $5`

// Find returns the posts in the lease's shards that need one kind of upkeep, most urgent first. It
// returns at most limit posts, and none of the posts in except. after is the age at which a post
// needs upkeep; it is ignored for UpkeepReap. If the lease is stale or there is a Postgres error,
// Find returns no posts.
func Find(
	ctx context.Context, d *db.DB, l dispatch.Lease, kind Upkeep, after time.Duration, except []publishing.PostID,
	limit int,
) (ids []publishing.PostID, err error) {
	sql := map[Upkeep]string{
		UpkeepReap: findReap, UpkeepExpire: findExpire, UpkeepStuck: findStuck, UpkeepOrphans: findOrphans,
	}[kind]
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(sql, l.Shards, l.Holder, after.Milliseconds(), db.UUIDs(except), limit).
			Query(db.Into(&ids, pgx.RowTo[publishing.PostID]))
	})
	return ids, err
}

//go:embed sql/reap.sql
var reap string

//go:embed sql/expire.sql
var expire string

//go:embed sql/fail_stuck.sql
var failStuck string

//go:embed sql/fail_orphans.sql
var failOrphans string

// MaxReaps is the number of consecutive processes that may end while preparing a post. After that,
// the post is abandoned, because it may be the cause.
const MaxReaps = 8

// Do performs one kind of upkeep on the given posts, and returns how many posts it changed. It
// skips posts that no longer need it. after is the age that was passed to Find. node is the
// process's name in timelines. If Postgres rejects the change to one post, Do changes no posts.
func Do(
	ctx context.Context, d *db.DB, kind Upkeep, posts []publishing.PostID, after time.Duration, node string,
) (n int, err error) {
	sql := map[Upkeep]string{
		UpkeepReap: reap, UpkeepExpire: expire, UpkeepStuck: failStuck, UpkeepOrphans: failOrphans,
	}[kind]
	limit := after.Milliseconds()
	if kind == UpkeepReap {
		limit = MaxReaps
	}
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(sql, db.UUIDs(posts), limit, node).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	})
	return n, err
}

const setAside = `-- publishing.SetAside
insert into post_event (org_id, post_id, event, node, reason)
select p.org_id, p.id, 'set_aside', $2, $3
from unnest(array[$1::uuid]) u(id) join post p on p.id = any (array[u.id]) and (p.shard >= 0) is true`

// SetAside adds a timeline event that explains why Postgres rejects changes to a post.
func SetAside(ctx context.Context, d *db.DB, post publishing.PostID, node, reason string) error {
	return d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) { b.Queue(setAside, post, node, reason) })
}
