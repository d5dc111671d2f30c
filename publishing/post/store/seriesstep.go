package store

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

//go:embed sql/find_ended_series.sql
var findEndedSeries string

// EndedSeries returns series in the lease's shards whose current occurrence has ended, or that have
// stopped since they were last advanced. It returns at most limit series. Organizations take turns.
// Within an organization, the series that have waited longest come first. A series that was set
// aside is skipped until it is due for a retry.
//
// If the lease is stale, EndedSeries returns no series. It returns any Postgres error.
func EndedSeries(ctx context.Context, d *db.DB, l dispatch.Lease, limit int) (out []publishing.SeriesRef, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(findEndedSeries, l.Shards, l.Holder, limit).Query(
			db.Into(&out, pgx.RowToStructByName[publishing.SeriesRef]),
		)
	})
	return out, err
}

// seriesLock holds the statements that lock and read a single series. The series is identified by a
// range of ids.
type seriesLock struct{ channel, series, stored string }

// lockBy returns the statements that lock and read the series selected by the condition where. wait
// ends the locking clause for the series. It is either empty or " skip locked".
//
// The channel is locked first, to prevent it from being disconnected. All code locks channels
// before series. The stored occurrences are read by a separate statement, because only a later
// snapshot shows what changed during the wait for the lock.
//
// If an occurrence was abandoned with an unknown outcome, it counts as failed. If that occurrence
// later turns out to have been published, the number of consecutive failures is reset.
func lockBy(where, wait string) seriesLock {
	return seriesLock{
		channel: `-- publishing.SeriesChannel
select c.id from channel c
where c.id in (select s.channel_id from series s where ` + where + `) for key share of c`,
		series: `-- publishing.SeriesLock
select ` + db.Columns[seriesRow]("s") + `,
  case when (
    select p.state from post p
    where p.org_id = s.org_id and p.series_id = s.id and p.occurrence < s.number and p.deleted_at is null
    order by p.occurrence desc limit 1) = 'PUBLISHED' then 0 else s.failures end as failures,
  s.stopped_at is not null as stopped, c.deleted_at is null as connected, clock_timestamp() as now
from series s join channel c on c.org_id = s.org_id and c.id = s.channel_id
where ` + where + ` for no key update of s` + wait,
		stored: `-- publishing.SeriesStored
select p.occurrence as number, case
    when p.deleted_at is not null then 'passed_by'
    when p.state = 'PUBLISHED' then 'published'
    when p.state = 'ERROR' and p.error_code = 'missed' and (q.paused or p.due < q.resumed_at) then 'passed_by'
    when p.state = 'ERROR' and p.error_code = 'quota' then 'passed_by'
    when p.state = 'ERROR' then 'failed'
    else 'open' end as state
from series s
join post p on p.org_id = s.org_id and p.series_id = s.id
left join channel_queue q on q.channel_id = s.channel_id
where ` + where + ` and (p.occurrence = s.number or p.occurrence > greatest(s.number, s.base))
order by p.occurrence`,
	}
}

var (
	seriesByID       = lockBy(`s.id between $1 and $2`, ``)
	seriesByTemplate = lockBy(`s.template between $1 and $2`, ``)
	seriesIfFree     = lockBy(`s.id between $1 and $2`, ` skip locked`)
)

// lockedSeries is a series locked by this transaction. No other transaction can advance it.
type lockedSeries struct {
	seriesRow
	Failures  int  `db:"failures"`
	Stopped   bool `db:"stopped"`
	Connected bool `db:"connected"`
	// Now is the database's time, read after the lock on the series was acquired.
	Now time.Time `db:"now"`
	// stored holds the occurrences that have a row, starting with the current one.
	stored []publishing.StoredOccurrence
}

// series converts the row to a publishing.Series. It returns Invalid if the series' time zone is
// unknown.
func (r lockedSeries) series() (publishing.Series, error) {
	zone, err := tenancy.LoadZone(r.Timezone)
	if err != nil {
		message := "The next occurrence could not be written: this server does not know the time zone " +
			strconv.Quote(r.Timezone) + "."
		return publishing.Series{}, fault.Wrap(fault.Invalid, "publishing.Series", message, err)
	}
	return publishing.Series{
		Rule: r.rule(zone), Number: r.Number, Failures: r.Failures, Connected: r.Connected,
	}, nil
}

// lockSeries locks a series and reads its stored occurrences, starting with the current one. It
// returns pgx.ErrNoRows if the series does not exist. It also returns this error if by contains
// statements that skip locked rows, and another transaction has locked the series.
func lockSeries(ctx context.Context, tx *db.Tx, by seriesLock, low, high uuid.UUID) (lockedSeries, error) {
	var locked []lockedSeries
	var stored []publishing.StoredOccurrence
	b := &pgx.Batch{}
	b.Queue(by.channel, low, high)
	b.Queue(by.series, low, high).Query(db.Into(&locked, pgx.RowToStructByName[lockedSeries]))
	b.Queue(by.stored, low, high).Query(db.Into(&stored, pgx.RowToStructByName[publishing.StoredOccurrence]))
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return lockedSeries{}, err
	}
	if len(locked) == 0 {
		return lockedSeries{}, pgx.ErrNoRows
	}
	locked[0].stored = stored
	return locked[0], nil
}

const seriesAdvance = `-- publishing.SeriesAdvance
update series
set number = $2, failures = $3, stopped_at = case when $4 <> '' then now() end, stopped_for = nullif($4, ''),
  retries = 0, retry_at = $5
where id = $1`

// occurrencesPass marks the occurrences that a series has moved past, or all of them if the series
// has stopped. It skips rows locked by another transaction, because waiting for them in this order
// could deadlock. A later call to Advance marks the skipped rows.
const occurrencesPass = `-- publishing.OccurrencesPass
update post set series_passed = true where id in (
  select p.id from post p where p.series_id = $1 and not p.series_passed and (p.occurrence < $2 or $3)
  order by p.id for no key update skip locked)`

const seriesStopped = `-- publishing.SeriesStopped
insert into post_event (org_id, post_id, event, node, reason) values ($1, $2, 'stopped', nullif($3, ''), $4)`

// Advance moves a series past the occurrences that have ended, and inserts the next occurrence if
// it is not stored yet (see publishing.Series). It reports whether it inserted an occurrence. If
// another transaction has locked the series, Advance waits if wait is set, and does nothing
// otherwise. It returns Invalid if the time zone is unknown.
//
// Advance can be called again after a crash, and can run in several processes at the same time. The
// lock on the series and the unique occurrence number ensure that each occurrence is inserted only
// once.
//
// If an occurrence exceeds the quota, it is inserted in the state ERROR. The series continues only
// after the time of that occurrence, so that each date fails once, independently of the others.
func Advance(
	ctx context.Context, tx *db.Tx, series publishing.SeriesID, wait bool, quota PostQuota,
) (written bool, err error) {
	by := seriesIfFree
	if wait {
		by = seriesByID
	}
	row, err := lockSeries(ctx, tx, by, series.UUID(), series.UUID())
	if pg.IsNoRows(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if row.Stopped {
		_, err := tx.Exec(ctx, occurrencesPass, row.ID, row.Number, true)
		return false, err
	}
	s, err := row.series()
	if err != nil {
		return false, err
	}
	next := s.Advance(row.stored, row.Now)
	if next.Number == row.Number && next.Stop == "" {
		_, err := tx.Exec(ctx, occurrencesPass, row.ID, row.Number, false)
		return false, err
	}
	var lookAgain *time.Time
	if next.Write {
		at := s.At(next.Number)
		goesOut := at
		if at.Before(row.Now) {
			goesOut = row.Now
		}
		allowed, err := quota.allows(ctx, goesOut)
		if err != nil {
			return false, err
		}
		held, err := writeOccurrence(ctx, tx, row, next.Number, at)
		if err != nil {
			return false, err
		}
		if !allowed && !held {
			lookAgain = &at
			if err := refuseOccurrence(ctx, tx, row.ID, row.Template, next.Number); err != nil {
				return false, err
			}
		}
	}
	b := &pgx.Batch{}
	b.Queue(seriesAdvance, row.ID, next.Number, next.Failures, next.Stop, lookAgain)
	b.Queue(occurrencesPass, row.ID, next.Number, next.Stop != "")
	if next.Stop == publishing.StopFailed {
		b.Queue(seriesStopped, tx.Org, occurrenceOf(row.ID, next.Number), tx.Node,
			fmt.Sprintf("%d failures in a row: the post is no longer repeated", next.Failures))
	}
	return next.Write, tx.SendBatch(ctx, b).Close()
}

// advanceTime limits the duration of AdvanceSeries' transaction, which locks a series and its
// channel.
const advanceTime = 3 * time.Second

// AdvanceSeries calls Advance in a separate transaction that takes at most advanceTime. It returns
// any error from Advance or ReadPostQuota, or pg.ErrOrgBusy. If the commit fails with an error for
// which pg.IsAway returns true, the occurrence may have been inserted anyway. The next call then
// continues from there.
func AdvanceSeries(
	ctx context.Context, d *db.DB, org tenancy.OrgID, series publishing.SeriesID, wait bool, q db.Quota,
) (written bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, advanceTime)
	defer cancel()
	err = d.InOrg(ctx, org, func(tx *db.Tx) error {
		quota, err := ReadPostQuota(ctx, tx, q)
		if err != nil {
			return err
		}
		written, err = Advance(ctx, tx, series, wait, quota)
		return err
	})
	if err != nil {
		return false, err
	}
	return written, nil
}

// occurrenceOf returns the id of an occurrence's root. A series has the same id as the root of its
// first occurrence.
func occurrenceOf(series publishing.SeriesID, number int) publishing.PostID {
	return publishing.Occurrence(id.FromUUID[publishing.PostTag](series.UUID()), number)
}

//go:embed sql/set_aside_series.sql
var setAsideSeries string

// SetAsideSeries makes EndedSeries skip a series for a while if its next occurrence could not be
// inserted. The wait grows with each consecutive failure, up to an hour. On the first failure,
// SetAsideSeries adds reason, a human-readable sentence, to the current occurrence's timeline.
//
// If another transaction has locked the series, SetAsideSeries changes nothing. It returns
// pg.ErrOrgBusy or any Postgres error.
func SetAsideSeries(
	ctx context.Context, d *db.DB, org tenancy.OrgID, series publishing.SeriesID, reason string,
) error {
	return d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(setAsideSeries, series, d.Node, reason) })
}

var templatePosts = `-- publishing.TemplatePosts
select ` + rootColumns + ` from post p where p.group_id = $1`

// template returns the posts that are copied to make an occurrence, each after its predecessor.
// Every post has at least one part.
func template(ctx context.Context, tx *db.Tx, group publishing.GroupID) ([]publishing.Post, error) {
	var posts []publishing.Post
	parts := map[publishing.PostID][]publishing.Part{}
	b := &pgx.Batch{}
	b.Queue(templatePosts, group).Query(db.Into(&posts, scanPost))
	self, media := [][16]byte{group.UUID()}, map[publishing.MediaID]publishing.Medium{}
	most := &budget{left: publishing.MaxListedBytes, stop: func() {}}
	readParts(b, most, self, self, media, func(r partRow, p publishing.Part) {
		parts[r.Post] = append(parts[r.Post], p)
	})
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	for i := range posts {
		posts[i].Parts = parts[posts[i].ID]
		if len(posts[i].Parts) == 0 {
			return nil, fmt.Errorf("post %s of template %s has no part", posts[i].ID, group)
		}
	}
	slices.SortFunc(posts, func(a, b publishing.Post) int { return a.Parts[0].Position - b.Parts[0].Position })
	if len(posts) == 0 || !posts[0].After.IsZero() {
		return nil, fmt.Errorf("template %s has no root", group)
	}
	return posts, nil
}

const occurrenceWritten = `-- publishing.OccurrenceWritten
insert into post_event (org_id, post_id, event, node, reason) values ($1, $2, 'written', nullif($3, ''), $4)`

// writeOccurrence inserts an occurrence of a locked series as a copy of the template. If the
// template still needs approval, the occurrence becomes a draft and held is true. If the occurrence
// number already has a row, writeOccurrence returns a unique violation.
func writeOccurrence(
	ctx context.Context, tx *db.Tx, s lockedSeries, number int, at time.Time,
) (held bool, err error) {
	template, err := template(ctx, tx, s.Template)
	if err != nil {
		return false, err
	}
	approved, held, err := templateApprovals(ctx, tx, s.Template)
	if err != nil {
		return false, err
	}
	posts, ids, digests := make([]NewPost, len(template)), make([][16]byte, len(template)), make([][]byte, len(template))
	for i, p := range template {
		digests[i] = approved[p.ID]
		p = copyOf(p, template[0].ID, s.ID, number)
		ids[i] = p.ID.UUID()
		p.State, p.Due, p.PublishDate = publishing.StateWaiting, nil, at
		posts[i] = NewPost{Post: p}
	}
	// Only the root has a series and an occurrence number. The followers wait for the root.
	root := &posts[0]
	root.State, root.Due = publishing.StateQueue, &at
	reason := fmt.Sprintf("repeated every %d days", s.Days)
	if held {
		root.State = publishing.StateDraft
		reason += "; its content is waiting for approval"
	}
	root.Series, root.Occurrence, root.Interval = s.ID, number, s.Days
	b := &pgx.Batch{}
	queueHidden(tx, b, posts)
	if len(approved) > 0 {
		b.Queue(approvedCopy, ids, digests)
	}
	b.Queue(occurrenceWritten, tx.Org, root.ID, tx.Node, reason)
	return held, tx.SendBatch(ctx, b).Close()
}

// copyOf returns a copy of a template post, with the ids that the post has in an occurrence. The
// root's id is derived from the series. The root's first part has the same id as the root.
func copyOf(p publishing.Post, root publishing.PostID, series publishing.SeriesID, number int) publishing.Post {
	idOf := func(post publishing.PostID) publishing.PostID {
		if post == root {
			return occurrenceOf(series, number)
		}
		return publishing.Occurrence(post, number)
	}
	rootPart := id.FromUUID[publishing.PartTag](root.UUID())
	p.ID, p.Group = idOf(p.ID), publishing.Occurrence(p.Group, number)
	if !p.After.IsZero() {
		p.After = idOf(p.After)
	}
	p.Parts = slices.Clone(p.Parts)
	for i := range p.Parts {
		if p.Parts[i].ID == rootPart {
			p.Parts[i].ID = id.FromUUID[publishing.PartTag](p.ID.UUID())
			continue
		}
		p.Parts[i].ID = publishing.Occurrence(p.Parts[i].ID, number)
	}
	return p
}
