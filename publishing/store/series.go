package store

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/publishing"
	"crier/tenancy"
)

const seriesBegin = `-- publishing.SeriesBegin
insert into series (org_id, id, channel_id, template, anchor, timezone, days, until_at, times)
select p.org_id, p.id, p.channel_id, $2, p.publish_date at time zone $3, $3, $4, $5, $6 from post p where p.id = $1 and p.series_id is null`

const seriesJoin = `-- publishing.SeriesJoin
update post p set series_id = coalesce(p.series_id, p.id), occurrence = coalesce(p.occurrence, 0), interval_days = $2 where p.id = $1`

// A series that is changed is anchored anew: numbers that had a row already are not used a second time.
const seriesChange = `-- publishing.SeriesChange
update series s set template = $2, anchor = p.publish_date at time zone $3, timezone = $3, days = $4, until_at = $5, times = $6,
  base = greatest(p.occurrence, (select max(q.occurrence) from post q where q.org_id = s.org_id and q.series_id = s.id)),
  number = p.occurrence, failures = 0, stopped_at = null, stopped_for = null
from post p where p.id = $1 and s.org_id = p.org_id and s.id = p.series_id`

const templateHide = `-- publishing.TemplateHide
update post set deleted_at = now() where group_id = $1`

// Repeat makes a stored post repeat, or changes how it does. The template is what later occurrences say: its posts are stored too, and hidden.
func (t *Tx) Repeat(ctx context.Context, root publishing.PostID, r publishing.Repeat, zone string, template []NewPost) error {
	group := template[0].Group
	var times *int
	if r.Count > 0 {
		times = &r.Count
	}
	b := &pgx.Batch{}
	for _, p := range template {
		queueHidden(b, p)
	}
	b.Queue(templateHide, group)
	b.Queue(seriesChange, root, group, zone, r.Days, r.Until, times)
	b.Queue(seriesBegin, root, group, zone, r.Days, r.Until, times)
	b.Queue(seriesJoin, root, r.Days)
	return t.tx.SendBatch(ctx, b).Close()
}

const seriesLater = `-- publishing.SeriesLater
select p.group_id from post p where p.series_id = $1 and p.occurrence <> $2 and p.deleted_at is null and p.state not in ('PUBLISHED', 'ERROR') order by p.id`

// Pending lists the groups of a series' occurrences that are not over, other than one.
func (t *Tx) Pending(ctx context.Context, series publishing.SeriesID, other int) ([]publishing.GroupID, error) {
	rows, err := t.tx.Query(ctx, seriesLater, series, other)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[publishing.GroupID])
}

const seriesEnd = `-- publishing.SeriesEnd
update series set stopped_at = now(), stopped_for = 'deleted' where id = $1 and stopped_at is null`

// EndSeries lets nothing follow any more. It comes before the deletion of what is pending, which would write the next occurrence.
func (t *Tx) EndSeries(ctx context.Context, series publishing.SeriesID) error {
	_, err := t.tx.Exec(ctx, seriesEnd, series)
	return err
}

const seriesRow = `-- publishing.SeriesRow
select number, stopped_at is not null from series where id = $1`

// NextOf tells the number of the next occurrence, and whether the series is over.
func (t *Tx) NextOf(ctx context.Context, series publishing.SeriesID) (number int, over bool, err error) {
	return number, over, t.tx.QueryRow(ctx, seriesRow, series).Scan(&number, &over)
}

const seriesByID = `-- publishing.SeriesByID
select s.id, s.template, s.number, s.base, s.stopped_at is not null from series s where s.id between $1 and $2 for no key update`

const seriesByGroup = `-- publishing.SeriesByGroup
select s.id, s.template, s.number, s.base, s.stopped_at is not null from series s where s.template between $1 and $2 for no key update`

const occurrenceWrite = `-- publishing.OccurrenceWrite
select write_occurrence(s.org_id, s.id, $2) from series s
where s.id = $1 and s.stopped_at is null and occurs(s.until_at, s.times, $2 - s.base, occurrence_at(s.anchor, s.timezone, s.days, $2 - s.base))
  and occurrence_at(s.anchor, s.timezone, s.days, $2 - s.base) > now()
  and not exists (select 1 from post p where p.org_id = s.org_id and p.id = occurrence_id(s.id, $2))`

// around are the smallest and the largest id that differ from one in the number of the occurrence only.
func around(of uuid.UUID) (low, high uuid.UUID) {
	low, high = of, of
	binary.BigEndian.PutUint32(low[12:], 0)
	binary.BigEndian.PutUint32(high[12:], ^uint32(0))
	return low, high
}

func numberOf(of, first uuid.UUID) int64 {
	return int64(binary.BigEndian.Uint32(of[12:]) ^ binary.BigEndian.Uint32(first[12:]))
}

// Materialize stores a later occurrence, named by the id or the group that lists give it, and returns its group and series; pgx.ErrNoRows means that there is none.
func (t *Tx) Materialize(ctx context.Context, named uuid.UUID, isGroup bool) (publishing.GroupID, publishing.SeriesID, error) {
	var series publishing.SeriesID
	var template publishing.GroupID
	var next, base int64
	var over bool
	low, high := around(named)
	sql := seriesByID
	if isGroup {
		sql = seriesByGroup
	}
	if err := t.tx.QueryRow(ctx, sql, low, high).Scan(&series, &template, &next, &base, &over); err != nil {
		return template, series, err
	}
	number := numberOf(named, series.UUID())
	if isGroup {
		number = numberOf(named, template.UUID())
	}
	if over || number <= max(next, base) || number > maxNumber {
		return template, series, pgx.ErrNoRows
	}
	var at time.Time
	return publishing.Occurrence(template, int(number)), series, t.tx.QueryRow(ctx, occurrenceWrite, series, number).Scan(&at)
}

// maxNumber bounds the numbers that ids may name: 200 years of days, several times over.
const maxNumber = 1 << 20

// The later occurrences of every series whose next one is booked: those that are not stored, edited or skipped.
const occurrences = `select s.id, s.template, s.channel_id, s.days, n.number, occurrence_at(s.anchor, s.timezone, s.days, n.number - s.base) as at, t.settings, t.creation_method, p.publish_date, s.created_at
from series s
join post p on p.org_id = s.org_id and p.id = occurrence_id(s.id, s.number) and p.deleted_at is null and p.state <> 'DRAFT'
join post t on t.org_id = s.org_id and t.group_id = s.template and t.after_post is null
join channel c on c.org_id = s.org_id and c.id = s.channel_id and c.deleted_at is null
`

const occurring = ` and s.stopped_at is null and n.at > now() and occurs(s.until_at, s.times, n.number - s.base, n.at)
  and not exists (select 1 from post x where x.org_id = s.org_id and x.id = occurrence_id(s.id, n.number))`

const occurrencesInRange = `-- publishing.OccurrencesInRange
` + occurrences + `cross join lateral (
  select i as number, occurrence_at(s.anchor, s.timezone, s.days, i - s.base) as at from generate_series(
    greatest(s.number, s.base, s.base + floor(extract(epoch from ($1::timestamptz at time zone s.timezone) - s.anchor) / 86400 / s.days)::integer - 1) + 1,
    s.base + ceil(extract(epoch from ($2::timestamptz at time zone s.timezone) - s.anchor) / 86400 / s.days)::integer + 1) i) n
where n.at >= $1 and n.at <= $2 and ($3::uuid is null or c.customer_id = $3)` + occurring + `
order by n.at limit $4`

const occurrenceByID = `-- publishing.OccurrenceByID
` + occurrences + `cross join lateral (
  select k.i as number, occurrence_at(s.anchor, s.timezone, s.days, k.i - s.base) as at
  from (select (('x' || right($1::uuid::text, 8))::bit(32) # ('x' || right(s.id::text, 8))::bit(32))::integer as i) k where k.i between 1 and $4 and k.i > greatest(s.number, s.base)) n
where s.id between $2 and $3` + occurring

func collectOccurrences(into *[]publishing.Post) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, scanOccurrence)
		return err
	}
}

func scanOccurrence(row pgx.CollectableRow) (p publishing.Post, err error) {
	p.Coming = &publishing.Coming{}
	p.State, p.Revision = publishing.StateQueue, 1
	err = row.Scan(&p.Series, &p.Coming.Template, &p.Channel, &p.Interval, &p.Occurrence, &p.PublishDate, &p.Settings, &p.CreationMethod, &p.Coming.Next, &p.CreatedAt)
	p.ID = publishing.Occurrence(id.FromUUID[publishing.PostTag](p.Series.UUID()), p.Occurrence)
	p.Group = publishing.Occurrence(p.Coming.Template, p.Occurrence)
	due := p.PublishDate
	p.Due, p.UpdatedAt = &due, p.CreatedAt
	return p, err
}

// Coming finds a later occurrence by the id that lists give it; none when there is no such occurrence.
func (s *Store) Coming(ctx context.Context, org tenancy.OrgID, post publishing.PostID) (out []publishing.Post, err error) {
	low, high := around(post.UUID())
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(occurrenceByID, post, low, high, maxNumber).Query(collectOccurrences(&out))
	})
	for i := range out {
		out[i].Org = org
	}
	return out, err
}
