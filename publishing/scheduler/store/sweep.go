package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

//go:embed sql/sweep.sql
var sweep string

//go:embed sql/sweep_channels.sql
var sweepChannels string

// sweepPosts is the number of due posts at which a sweep stops reading posts and searches channel
// by channel instead. The threshold is needed because an organization can schedule any number of
// posts for the same time.
//
// With 100,000 channels, reading 500,000 due posts takes 0.6 seconds, and reading 2,000,000 takes 2
// to 3 seconds. Searching channel by channel takes 0.3 seconds, even if nothing is due.
const sweepPosts = 500_000

// Sweep returns the time at which each organization in the lease's shards first has a post due on a
// free channel. Only posts due at most horizon from now and at most maxLate ago are considered. now
// is the database's time, or zero if no post is due. If the lease is stale, Sweep finds nothing. It
// returns any Postgres error.
func Sweep(
	ctx context.Context, d *db.DB, l dispatch.Lease, horizon, maxLate time.Duration,
) (next map[tenancy.OrgID]time.Time, now time.Time, err error) {
	return sweepUnless(ctx, d, l, horizon, maxLate, sweepPosts)
}

// sweepUnless is Sweep with a configurable threshold. It searches channel by channel once the
// number of due posts reaches most.
func sweepUnless(
	ctx context.Context, d *db.DB, l dispatch.Lease, horizon, maxLate time.Duration, most int64,
) (next map[tenancy.OrgID]time.Time, now time.Time, err error) {
	next, now, read, err := sweepBy(ctx, d, sweep, l, horizon, maxLate, most)
	if err != nil || read < most {
		return next, now, err
	}
	next, now, _, err = sweepBy(ctx, d, sweepChannels, l, horizon, maxLate, most)
	return next, now, err
}

// sweepRow is the result for one organization with due posts.
type sweepRow struct {
	org tenancy.OrgID
	// at is nil if every channel with due posts is busy, paused or parked.
	at  *time.Time
	now time.Time
	// posts is the number of due posts that the statement has read for the organization.
	posts int64
}

// columns must match the column order of sweep.sql and sweep_channels.sql, because db.Collect scans
// by position.
func (r *sweepRow) columns() []db.Column {
	return []db.Column{db.Col("org_id", &r.org), db.Col("at", &r.at), db.Col("now", &r.now), db.Col("posts", &r.posts)}
}

// sweepBy executes sweep.sql or sweep_channels.sql. read is the number of due posts that the
// statement has read.
func sweepBy(
	ctx context.Context, d *db.DB, sql string, l dispatch.Lease, horizon, maxLate time.Duration, most int64,
) (next map[tenancy.OrgID]time.Time, now time.Time, read int64, err error) {
	var rows []sweepRow
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		rows = nil
		b.Queue(sql, l.Shards, l.Holder, horizon.Milliseconds(), maxLate.Milliseconds(), most).
			Query(db.Collect(&rows, (*sweepRow).columns))
	})
	next = map[tenancy.OrgID]time.Time{}
	for _, r := range rows {
		now, read = r.now, read+r.posts
		if r.at != nil {
			next[r.org] = *r.at
		}
	}
	return next, now, read, err
}
