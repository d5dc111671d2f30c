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
	"crier/tenancy"
)

//go:embed sql/find_ended_series.sql
var findEndedSeries string

// SeriesRef names a series.
type SeriesRef struct {
	Org    tenancy.OrgID
	Series publishing.SeriesID
}

// EndedSeries lists at most limit series whose next occurrence is to be written: of each organization in turn, those that
// wait longest first. Those that were set aside are left out until their time has come.
func (s *Store) EndedSeries(ctx context.Context, l publishing.Lease, limit int) (out []SeriesRef, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(findEndedSeries, l.Shards, l.Holder, limit).Query(into(&out, pgx.RowToStructByPos[SeriesRef]))
	})
	return out, err
}

// seriesBy is a condition that names one series by a range of ids, and how to lock it.
type seriesBy struct{ channel, series, stored string }

// The channel is locked before the series, as everywhere, and only against being disconnected. What is stored is read
// by a statement of its own: only a later snapshot sees what the lock waited for. An occurrence that was counted as
// failed, because its outcome was unknown, and turned out to be published ends the row of failures.
func seriesByCondition(where, wait string) seriesBy {
	return seriesBy{
		channel: `-- publishing.SeriesChannel
select c.id from channel c where c.id in (select s.channel_id from series s where ` + where + `) for key share of c`,
		series: `-- publishing.SeriesLock
select s.id, s.template, s.channel_id, s.anchor, s.timezone, s.days, s.base, s.until_at, s.times, s.number,
  case when (
    select p.state from post p
    where p.org_id = s.org_id and p.series_id = s.id and p.occurrence < s.number and p.deleted_at is null
    order by p.occurrence desc limit 1) = 'PUBLISHED' then 0 else s.failures end,
  s.stopped_at is not null, c.deleted_at is null, clock_timestamp()
from series s join channel c on c.org_id = s.org_id and c.id = s.channel_id
where ` + where + ` for no key update of s` + wait,
		stored: `-- publishing.SeriesStored
select p.occurrence, case
    when p.deleted_at is not null then 'passed_by'
    when p.state = 'PUBLISHED' then 'published'
    when p.state = 'ERROR' and p.error_code = 'missed' and (q.paused or p.due < q.resumed_at) then 'passed_by'
    when p.state = 'ERROR' then 'failed'
    else 'open' end
from series s
join post p on p.org_id = s.org_id and p.series_id = s.id
left join channel_queue q on q.channel_id = s.channel_id
where ` + where + ` and (p.occurrence = s.number or p.occurrence > greatest(s.number, s.base)) order by p.occurrence`,
	}
}

var (
	seriesByID       = seriesByCondition(`s.id between $1 and $2`, ``)
	seriesByTemplate = seriesByCondition(`s.template between $1 and $2`, ``)
	seriesIfFree     = seriesByCondition(`s.id between $1 and $2`, ` skip locked`)
)

// lockedSeries is a series that this transaction alone may move on.
type lockedSeries struct {
	ID        publishing.SeriesID
	Template  publishing.GroupID
	Channel   publishing.ChannelID
	Anchor    time.Time
	Timezone  string
	Days      int
	Base      int
	Until     *time.Time
	Times     *int
	Number    int
	Failures  int
	Stopped   bool
	Connected bool
	Now       time.Time // of the database
	stored    []publishing.StoredOccurrence
}

// series is the row by its rules; an unknown zone is Invalid.
func (r lockedSeries) series() (publishing.Series, error) {
	zone, err := tenancy.LoadZone(r.Timezone)
	if err != nil {
		message := "The next occurrence could not be written: this server does not know the time zone " +
			strconv.Quote(r.Timezone) + "."
		return publishing.Series{}, fault.Wrap(fault.Invalid, "publishing.Series", message, err)
	}
	s := publishing.Series{
		Recurrence: publishing.Recurrence{Anchor: r.Anchor, Zone: zone, Days: r.Days, Base: r.Base, Until: r.Until},
		Number:     r.Number, Failures: r.Failures, Connected: r.Connected,
	}
	if r.Times != nil {
		s.Count = *r.Times
	}
	return s, nil
}

// lockSeries locks a series and reads its occurrences from the current one on; pgx.ErrNoRows means that there is
// none, or that it is locked and the condition does not wait.
func (t *Tx) lockSeries(ctx context.Context, by seriesBy, low, high uuid.UUID) (r lockedSeries, err error) {
	b := &pgx.Batch{}
	b.Queue(by.channel, low, high)
	b.Queue(by.series, low, high).QueryRow(func(row pgx.Row) error {
		return row.Scan(&r.ID, &r.Template, &r.Channel, &r.Anchor, &r.Timezone, &r.Days, &r.Base, &r.Until, &r.Times,
			&r.Number, &r.Failures, &r.Stopped, &r.Connected, &r.Now)
	})
	b.Queue(by.stored, low, high).Query(into(&r.stored, pgx.RowToStructByPos[publishing.StoredOccurrence]))
	return r, t.tx.SendBatch(ctx, b).Close()
}

const seriesAdvance = `-- publishing.SeriesAdvance
update series
set number = $2, failures = $3, stopped_at = case when $4 <> '' then now() end, stopped_for = nullif($4, ''),
  retries = 0, retry_at = null
where id = $1`

// Rows that somebody else has locked are left for the next step: waiting for them in this order could deadlock.
const occurrencesPass = `-- publishing.OccurrencesPass
update post set series_passed = true where id in (
  select p.id from post p where p.series_id = $1 and not p.series_passed and (p.occurrence < $2 or $3)
  order by p.id for no key update skip locked)`

const seriesStopped = `-- publishing.SeriesStopped
insert into post_event (org_id, post_id, event, node, reason) values ($1, $2, 'stopped', nullif($3, ''), $4)`

// Advance moves a series past its occurrences that have ended and stores the next one (publishing.Series). It returns
// whether it stored one. It may be repeated and run anywhere at the same time: the lock on the series and the key of
// the number let each occurrence be written once. A series that somebody else has locked is left alone unless wait is
// set. An unknown zone is Invalid.
func (t *Tx) Advance(ctx context.Context, series publishing.SeriesID, wait bool) (written bool, err error) {
	by := seriesIfFree
	if wait {
		by = seriesByID
	}
	row, err := t.lockSeries(ctx, by, series.UUID(), series.UUID())
	if pg.IsNoRows(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if row.Stopped {
		_, err := t.tx.Exec(ctx, occurrencesPass, row.ID, row.Number, true)
		return false, err
	}
	s, err := row.series()
	if err != nil {
		return false, err
	}
	next := s.Advance(row.stored, row.Now)
	if next.Number == row.Number && next.Stop == "" {
		_, err := t.tx.Exec(ctx, occurrencesPass, row.ID, row.Number, false)
		return false, err
	}
	if next.Write {
		if err := t.writeOccurrence(ctx, row, next.Number, s.At(next.Number)); err != nil {
			return false, err
		}
	}
	b := &pgx.Batch{}
	b.Queue(seriesAdvance, row.ID, next.Number, next.Failures, next.Stop)
	b.Queue(occurrencesPass, row.ID, next.Number, next.Stop != "")
	if next.Stop == publishing.StopFailed {
		b.Queue(seriesStopped, t.org, occurrenceOf(row.ID, next.Number), t.node,
			fmt.Sprintf("%d failures in a row: the post is not repeated any more", next.Failures))
	}
	return next.Write, t.tx.SendBatch(ctx, b).Close()
}

// advanceTime is how long moving one series may take.
const advanceTime = 3 * time.Second

// Advance is Tx.Advance in a transaction of its own, of at most three seconds.
func (s *Store) Advance(ctx context.Context, org tenancy.OrgID, series publishing.SeriesID, wait bool) (written bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, advanceTime)
	defer cancel()
	err = s.InOrg(ctx, org, func(tx *Tx) error {
		written, err = tx.Advance(ctx, series, wait)
		return err
	})
	return written && err == nil, err
}

// occurrenceOf is the id of the root of an occurrence.
func occurrenceOf(series publishing.SeriesID, number int) publishing.PostID {
	return publishing.Occurrence(id.FromUUID[publishing.PostTag](series.UUID()), number)
}

//go:embed sql/set_aside_series.sql
var setAsideSeries string

// SetAsideSeries keeps a series whose next occurrence could not be written out of EndedSeries for a while; reason is
// for people.
func (s *Store) SetAsideSeries(ctx context.Context, org tenancy.OrgID, series publishing.SeriesID, reason string) error {
	return s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(setAsideSeries, series, s.node, reason) })
}

const templatePosts = `-- publishing.TemplatePosts
select ` + rootColumns + ` from post p where p.group_id = $1`

// template reads the posts that occurrences are copied from, each after the one that it follows.
func (t *Tx) template(ctx context.Context, group publishing.GroupID) ([]publishing.Post, error) {
	var posts []publishing.Post
	parts := map[publishing.PostID][]publishing.Part{}
	b := &pgx.Batch{}
	b.Queue(templatePosts, group).Query(into(&posts, scanPost))
	self, media := [][16]byte{group.UUID()}, map[publishing.MediaID]publishing.Medium{}
	readParts(b, &budget{publishing.MaxListedBytes, func() {}}, self, self, media, func(_ publishing.GroupID, post publishing.PostID, p publishing.Part) {
		parts[post] = append(parts[post], p)
	})
	if err := t.tx.SendBatch(ctx, b).Close(); err != nil {
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

const occurrenceInsert = `-- publishing.OccurrenceInsert
insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date, after_post, delay_minutes,
  settings, creation_method, series_id, occurrence, interval_days)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`

const occurrenceWritten = `-- publishing.OccurrenceWritten
insert into post_event (org_id, post_id, event, node, reason) values ($1, $2, 'written', nullif($3, ''), $4)`

// writeOccurrence stores an occurrence of a locked series as a copy of its template. One that has a row already is a
// unique violation.
func (t *Tx) writeOccurrence(ctx context.Context, s lockedSeries, number int, at time.Time) error {
	posts, err := t.template(ctx, s.Template)
	if err != nil {
		return err
	}
	root := posts[0].ID
	b := &pgx.Batch{}
	for _, p := range posts {
		// Only the root belongs to the series; the rest of its group waits for it.
		var series publishing.SeriesID
		var nth, days *int
		var due *time.Time
		first := p.ID == root
		if first {
			series, nth, days, due = s.ID, &number, &s.Days, &at
		}
		copied := copyOf(p, root, s.ID, number)
		state := publishing.StateWaiting
		if first {
			state = publishing.StateQueue
		}
		b.Queue(occurrenceInsert, t.org, copied.ID, copied.Group, p.Channel, tenancy.Shard(t.org), state, due, at,
			copied.After, int(p.Delay.Minutes()), p.Settings, p.CreationMethod, series, nth, days)
		t.queueParts(b, []NewPost{{Post: copied}})
	}
	b.Queue(occurrenceWritten, t.org, occurrenceOf(s.ID, number), t.node, fmt.Sprintf("repeated every %d days", s.Days))
	return t.tx.SendBatch(ctx, b).Close()
}

// copyOf gives a post of a template the ids that it has in an occurrence. The root of an occurrence has the series'
// id, and the first part has its post's.
func copyOf(p publishing.Post, root publishing.PostID, series publishing.SeriesID, number int) publishing.Post {
	named := func(post publishing.PostID) publishing.PostID {
		if post == root {
			return occurrenceOf(series, number)
		}
		return publishing.Occurrence(post, number)
	}
	rootPart := id.FromUUID[publishing.PartTag](root.UUID())
	p.ID, p.Group = named(p.ID), publishing.Occurrence(p.Group, number)
	if !p.After.IsZero() {
		p.After = named(p.After)
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
