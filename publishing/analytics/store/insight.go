// Package store reads and writes statistics, snapshots and reports in the database. Only the parent
// package imports it.
package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// InsightOf identifies the channel or post to which stored statistics belong.
type InsightOf struct {
	Channel publishing.ChannelID
	// Post is the first post of the thread, or zero for the channel itself.
	Post publishing.PostID
	// Release is the post's id on its platform. If the post has been published again, statistics
	// stored under an earlier id are neither returned nor updated. Example:
	// at://did:plc:abc/app.bsky.feed.post/3k2a
	Release string
}

func (i InsightOf) subject() uuid.UUID {
	if i.Post.IsZero() {
		return i.Channel.UUID()
	}
	return i.Post.UUID()
}

// Insight holds the stored statistics of a channel or a post.
type Insight struct {
	// ReadAt is when the platform was last read, or nil if it never was.
	ReadAt *time.Time `db:"read_at"`
	// TriedAt is when a read was last attempted. Problem is a human-readable sentence explaining
	// why reads have failed since ReadAt. It is empty if no read has failed since then.
	TriedAt *time.Time `db:"tried_at"`
	Problem string     `db:"problem"`
	// Empty is true if the last response had no figures, for example because the platform no longer
	// has the post.
	Empty bool `db:"empty"`
	// AgainAt is when the platform may next be queried about the channel and its posts. It is nil
	// unless the platform requested a wait.
	AgainAt *time.Time `db:"again_at"`
	// LastDay is the last day with known figures, or nil if there is none.
	LastDay *time.Time `db:"last_day"`
	// Days holds the requested days with known figures, earliest first.
	Days []publishing.DaySamples `db:"-"`
}

const insightRead = `-- publishing.InsightRead
select i.read_at, i.tried_at, coalesce(i.problem, '') as problem, coalesce(i.empty, false) as empty,
  (select a.again_at from insight a where a.subject = $3) as again_at,
  (select max(d.day) from insight_day d where d.subject = i.subject) as last_day
from (select) one left join insight i on i.subject = $1 and i.release = $2`

const insightDays = `-- publishing.InsightDays
select d.day, d.counts, d.levels, d.whole
from insight i join insight_day d on d.org_id = i.org_id and d.subject = i.subject
where i.subject = $1 and i.release = $2 and d.day >= $3 and d.day <= $4 order by d.day`

// FindInsight returns the stored statistics, with the figures for the days from first to last. If
// nothing is stored, the result is zero.
func FindInsight(
	ctx context.Context, d *db.DB, org tenancy.OrgID, of InsightOf, first, last time.Time,
) (out Insight, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) { queueInsight(b, of, first, last, &out) })
	return out, err
}

func queueInsight(b *pgx.Batch, of InsightOf, first, last time.Time, out *Insight) {
	var days []publishing.DaySamples
	b.Queue(insightRead, of.subject(), of.Release, of.Channel).Query(func(rows pgx.Rows) error {
		*out = Insight{}
		for rows.Next() {
			if err := rows.Scan(
				&out.ReadAt, &out.TriedAt, &out.Problem, &out.Empty, &out.AgainAt, &out.LastDay,
			); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	b.Queue(insightDays, of.subject(), of.Release, first, last).Query(func(rows pgx.Rows) error {
		err := db.Into(&days, scanDay)(rows)
		out.Days = days
		return err
	})
}

func scanDay(row pgx.CollectableRow) (d publishing.DaySamples, err error) {
	err = row.Scan(&d.Day, &d.Counts, &d.Levels, &d.Whole)
	d.Day = d.Day.UTC()
	return d, err
}

//go:embed sql/insights_save.sql
var insightsSave string

// ReadInsight holds the statistics that were read for a channel or a post.
type ReadInsight struct {
	InsightOf
	// Next is when the channel's next daily snapshot is due. If Next is nil, the stored time is
	// kept. Next must be nil for a post.
	Next *time.Time
	Days []publishing.DaySamples
}

// insightForget deletes statistics that were stored under a post's earlier platform id.
const insightForget = `-- publishing.InsightForget
delete from insight i using unnest($1::uuid[], $2::text[]) u(post, release)
where i.subject = u.post and i.release <> u.release
  and exists (select from post p where p.id = u.post and p.release_id = u.release)`

func queueForget(b *pgx.Batch, all ...InsightOf) {
	var posts []publishing.PostID
	var releases []string
	for _, of := range all {
		if !of.Post.IsZero() {
			posts, releases = append(posts, of.Post), append(releases, of.Release)
		}
	}
	if len(posts) > 0 {
		b.Queue(insightForget, db.UUIDs(posts), releases)
	}
}

// SaveInsights stores the given statistics in one transaction. now is the time at which they were
// read. New figures replace stored figures for the same day and label. SaveInsights ignores
// channels and posts that no longer exist, and posts that have been published again since they were
// read.
func SaveInsights(ctx context.Context, s *db.DB, org tenancy.OrgID, now time.Time, all []ReadInsight) error {
	return s.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		subjects := make([]InsightOf, len(all))
		for i, r := range all {
			subjects[i] = r.InsightOf
		}
		queueForget(b, subjects...)
		for _, r := range all {
			days := make([]time.Time, len(r.Days))
			counts, levels := make([]map[string]float64, len(r.Days)), make([]map[string]float64, len(r.Days))
			whole := make([]bool, len(r.Days))
			for i, d := range r.Days {
				days[i], counts[i], levels[i], whole[i] = d.Day, orEmpty(d.Counts), orEmpty(d.Levels), d.Whole
			}
			b.Queue(insightsSave, r.subject(), r.Channel, r.Post, now, r.Next, days, counts, levels, whole, r.Release)
		}
	})
}

func orEmpty(m map[string]float64) map[string]float64 {
	if m == nil {
		return map[string]float64{}
	}
	return m
}

const snapshotFailed = `-- publishing.SnapshotFailed
update insight set tried_at = $2::timestamptz, problem = $3, again_at = greatest(again_at, $4),
failures = least(failures + 1, 100),
  next_at = greatest($4, $2::timestamptz + (2 + least(failures, 2)) * interval '1 hour')
where subject = $1`

// InsightFailure says why statistics could not be read.
type InsightFailure struct {
	At time.Time
	// Problem is a human-readable sentence of at most 1,000 bytes.
	Problem string
	// Again is when the platform may next be queried. It is nil unless the platform requested a
	// wait.
	Again *time.Time
}

// SnapshotFailed is like InsightFailed, but for a channel's snapshot. The channel is due again 2
// hours after a first failure, 3 hours after a second consecutive failure, and 4 hours after any
// further failure. It is never due before f.Again.
func SnapshotFailed(
	ctx context.Context, d *db.DB, org tenancy.OrgID, channel publishing.ChannelID, f InsightFailure,
) error {
	return d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(snapshotFailed, channel, f.At, f.Problem, f.Again)
	})
}

const insightFailed = `-- publishing.InsightFailed
insert into insight (org_id, subject, channel_id, post_id, tried_at, problem, release)
select c.org_id, $1, $2, $3, $4, $5, $6 from channel c
where c.id = $2 and c.deleted_at is null
  and ($3::uuid is null or exists (
    select from post p where p.id = $3 and p.channel_id = c.id and p.release_id = $6))
on conflict (org_id, subject) do update set tried_at = $4, problem = $5 where insight.release = $6`

const insightWait = `-- publishing.InsightWait
insert into insight (org_id, subject, channel_id, again_at, next_at)
select c.org_id, c.id, c.id, $2, $2 from channel c where c.id = $1 and c.deleted_at is null
on conflict (org_id, subject) do update
  set again_at = greatest(insight.again_at, $2), next_at = greatest(insight.next_at, $2)`

// InsightFailed records that the platform could not be read. If f.Again is set, neither the channel
// nor its posts are read before that time.
func InsightFailed(ctx context.Context, d *db.DB, org tenancy.OrgID, of InsightOf, f InsightFailure) error {
	return d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		queueForget(b, of)
		b.Queue(insightFailed, of.subject(), of.Channel, of.Post, f.At, f.Problem, of.Release)
		if f.Again != nil {
			b.Queue(insightWait, of.Channel, *f.Again)
		}
	})
}

// Released is a post with its platform id and URL.
type Released struct {
	Post    publishing.PostID
	Channel publishing.ChannelID
	// PublishedOn is the publish date that the calendar shows, or the time at which the post was
	// due if that is later.
	PublishedOn time.Time
	// ID is empty if the post is not published. It is publishing.ReleaseMissing if the platform did
	// not return an id.
	ID, URL string
	// Data is what the connector needs to reply to the post, or nil if unknown.
	Data []byte
}

const releasedColumns = `p.id, p.channel_id, greatest(p.publish_date, p.due) as published_on,
  coalesce(p.release_id, '') as release_id, coalesce(p.release_url, '') as release_url, x.ref
from post p
left join lateral (
  select x.ref from publication x
  where x.post_id = p.id and x.phase = 'done' and x.release_id = p.release_id
  order by x.number desc, x.position limit 1) x on true`

const releasedPost = `-- publishing.ReleasedPost
select ` + releasedColumns + `
where p.id = $1 and p.deleted_at is null`

// FindReleased returns a post with its platform id and URL. It returns pgx.ErrNoRows if the post
// does not exist or is deleted.
func FindReleased(ctx context.Context, d *db.DB, org tenancy.OrgID, post publishing.PostID) (out Released, err error) {
	var found []Released
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(releasedPost, post).Query(db.Into(&found, scanReleased))
	})
	if err == nil && len(found) == 0 {
		err = pgx.ErrNoRows
	}
	if err != nil {
		return out, err
	}
	return found[0], nil
}

func scanReleased(row pgx.CollectableRow) (r Released, err error) {
	return r, row.Scan(&r.Post, &r.Channel, &r.PublishedOn, &r.ID, &r.URL, &r.Data)
}

//go:embed sql/snapshots_due.sql
var snapshotsDue string

// DueSnapshot is a channel whose daily snapshot is due.
type DueSnapshot struct {
	Org       tenancy.OrgID        `db:"org_id"`
	Channel   publishing.ChannelID `db:"channel_id"`
	Connector string               `db:"connector"`
	// Destination holds the hosts that may be queried, separated by commas, or the connector if no
	// host is known. Example: bsky.social,pds.example.com
	Destination string `db:"destination"`
}

// SnapshotBatch selects the channels that SnapshotsDue takes.
type SnapshotBatch struct {
	Platforms []string
	// OfOrg, OfServer and Total limit how many channels are taken per organization, per server and
	// in total.
	OfOrg, OfServer, Total int
	Now                    time.Time
	// Again is the earliest time at which another call may take the channels.
	Again time.Time
}

// SnapshotsDue takes and returns channels on q.Platforms whose snapshots are due. Channels with
// fewer failures are taken first. Among channels with the same number of failures, those that have
// been due longest are taken first. Taken channels are due again at q.Again, unless SaveInsights,
// SnapshotFailed or PutOffSnapshot sets a different time.
func SnapshotsDue(ctx context.Context, d *db.DB, q SnapshotBatch) (out []DueSnapshot, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(snapshotsDue, q.Platforms, q.OfOrg, q.OfServer, q.Total, q.Now, q.Again).
			Query(db.Into(&out, pgx.RowToStructByName[DueSnapshot]))
	})
	return out, err
}

const snapshotPutOff = `-- publishing.SnapshotPutOff
update insight set next_at = $2 where subject = $1`

// PutOffSnapshot postpones a channel's snapshot until next.
func PutOffSnapshot(
	ctx context.Context, d *db.DB, org tenancy.OrgID, channel publishing.ChannelID, next time.Time,
) error {
	return d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(snapshotPutOff, channel, next) })
}

const channelActive = `-- publishing.ChannelActive
select exists (
  select from channel c join organization o on o.id = c.org_id
  where c.id = $1 and c.deleted_at is null and o.suspended_at is null and o.deleted_at is null)`

// ChannelActive reports whether a channel is connected and its organization has access.
func ChannelActive(
	ctx context.Context, d *db.DB, org tenancy.OrgID, channel publishing.ChannelID,
) (active bool, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(channelActive, channel).QueryRow(func(row pgx.Row) error { return row.Scan(&active) })
	})
	return active, err
}

// SnapshotSource holds the data needed to take a channel's snapshot.
type SnapshotSource struct {
	Access db.Access
	// Active is false if the organization has no access.
	Active bool
	// ReadAt is when the channel's statistics were last read, or nil if they never were. LastDay is
	// the last day with known figures, or nil if there is none.
	ReadAt, LastDay *time.Time
	// Posts are the latest published posts.
	Posts []Released
}

const releasedLately = `-- publishing.ReleasedLately
select ` + releasedColumns + `
where p.channel_id = $1 and p.publish_date >= $2 and p.state = 'PUBLISHED' and p.after_post is null
  and p.deleted_at is null and p.release_id <> $3
order by p.publish_date desc, p.id desc limit $4`

// FindSnapshotSource returns the data needed to take a channel's snapshot, including the latest
// posts published since the given time. posts is the maximum number of posts. FindSnapshotSource
// returns pgx.ErrNoRows if the channel is disconnected.
func FindSnapshotSource(
	ctx context.Context, d *db.DB, org tenancy.OrgID, channel publishing.ChannelID, since time.Time, posts int,
) (out SnapshotSource, err error) {
	var rows []db.AccessRow
	var insight Insight
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(db.ChannelAccess, channel).Query(db.Into(&rows, pgx.RowToStructByName[db.AccessRow]))
		b.Queue(db.OrgActive, org).QueryRow(func(row pgx.Row) error { return row.Scan(&out.Active) })
		b.Queue(
			releasedLately, channel, since, publishing.ReleaseMissing, posts,
		).Query(db.Into(&out.Posts, scanReleased))
		queueInsight(b, InsightOf{Channel: channel}, since, since, &insight)
	})
	if err == nil && len(rows) == 0 {
		err = pgx.ErrNoRows
	}
	if err != nil {
		return out, err
	}
	out.Access, out.ReadAt, out.LastDay = rows[0].Access(), insight.ReadAt, insight.LastDay
	return out, nil
}
