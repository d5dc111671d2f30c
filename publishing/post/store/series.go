package store

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/recurrence"
	"crier/tenancy"
)

// seriesRow holds the series columns that determine when occurrences are due.
type seriesRow struct {
	ID       publishing.SeriesID  `db:"id"`
	Template publishing.GroupID   `db:"template"`
	Channel  publishing.ChannelID `db:"channel_id"`
	Anchor   time.Time            `db:"anchor"`
	Timezone string               `db:"timezone"`
	Days     int                  `db:"days"`
	Base     int                  `db:"base"`
	Until    *time.Time           `db:"until_at"`
	Times    *int                 `db:"times"`
	Number   int                  `db:"number"`
}

// rule returns the recurrence rule. It takes the zone as a parameter, because loading the zone can
// fail (see tenancy.LoadZone).
func (r seriesRow) rule(zone *time.Location) recurrence.Rule {
	out := recurrence.Rule{Anchor: r.Anchor, Zone: zone, Days: r.Days, Base: r.Base, Until: r.Until}
	if r.Times != nil {
		out.Count = *r.Times
	}
	return out
}

const seriesBegin = `-- publishing.SeriesBegin
insert into series (org_id, id, channel_id, template, anchor, timezone, days, until_at, times)
select p.org_id, p.id, p.channel_id, $2, $3::timestamp, $4, $5, $6, $7
from post p where p.id = $1 and p.series_id is null`

const seriesJoin = `-- publishing.SeriesJoin
update post p
set series_id = coalesce(p.series_id, p.id), occurrence = coalesce(p.occurrence, 0), interval_days = $2,
  series_passed = false
where p.id = $1`

// seriesChange sets base to the largest occurrence number that has a row, so that no number is
// reused with the new anchor.
const seriesChange = `-- publishing.SeriesChange
update series s set template = $2, anchor = $3::timestamp, timezone = $4, days = $5, until_at = $6, times = $7,
  base = greatest(p.occurrence,
    (select max(q.occurrence) from post q where q.org_id = s.org_id and q.series_id = s.id)),
  number = p.occurrence, failures = 0, stopped_at = null, stopped_for = null, retries = 0, retry_at = null
from post p where p.id = $1 and s.org_id = p.org_id and s.id = p.series_id`

const templateHide = `-- publishing.TemplateHide
update post set deleted_at = now() where group_id = $1`

const publishDate = `-- publishing.PublishDate
select publish_date from post where id = $1`

// Repeat makes a stored post the current occurrence of a new series. If the post already belongs to
// a series, Repeat changes that series instead. Later occurrences are copies of template, whose
// posts are inserted as deleted posts. Repeat returns Invalid if the time zone is unknown, and
// pgx.ErrNoRows if the post does not exist.
func Repeat(
	ctx context.Context, tx *db.Tx, root publishing.PostID, r publishing.Repeat, timezone string, template []NewPost,
) error {
	zone, err := tenancy.LoadZone(timezone)
	if err != nil {
		return err
	}
	var at time.Time
	if err := tx.QueryRow(ctx, publishDate, root).Scan(&at); err != nil {
		return err
	}
	group, anchor := template[0].Group, recurrence.WallClock(at, zone)
	var times *int
	if r.Count > 0 {
		times = &r.Count
	}
	b := &pgx.Batch{}
	queueHidden(tx, b, template)
	b.Queue(templateHide, group)
	b.Queue(seriesChange, root, group, anchor, timezone, r.Days, r.Until, times)
	b.Queue(seriesBegin, root, group, anchor, timezone, r.Days, r.Until, times)
	b.Queue(seriesJoin, root, r.Days)
	return tx.SendBatch(ctx, b).Close()
}

const seriesLater = `-- publishing.SeriesLater
select p.group_id from post p
where p.series_id = $1 and p.occurrence <> $2 and p.deleted_at is null and p.state not in ('PUBLISHED', 'ERROR')
order by p.id`

// Pending returns the groups of a series' stored occurrences that have not ended, except for
// occurrence number other. If the series does not exist, Pending returns no groups. It returns any
// Postgres error.
func Pending(ctx context.Context, tx *db.Tx, series publishing.SeriesID, other int) ([]publishing.GroupID, error) {
	rows, err := tx.Query(ctx, seriesLater, series, other)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[publishing.GroupID])
}

const seriesEnd = `-- publishing.SeriesEnd
update series set stopped_at = now(), stopped_for = 'deleted' where id = $1 and stopped_at is null`

// EndSeries stops a series, so that no further occurrences follow. It does nothing if the series
// has already stopped or does not exist. It returns any Postgres error.
func EndSeries(ctx context.Context, tx *db.Tx, series publishing.SeriesID) error {
	_, err := tx.Exec(ctx, seriesEnd, series)
	return err
}

const seriesNumber = `-- publishing.SeriesNumber
select number, stopped_at is not null from series where id = $1`

// NextOf returns the number of a series' current occurrence, and whether the series has stopped. It
// returns pgx.ErrNoRows if the series does not exist.
func NextOf(ctx context.Context, tx *db.Tx, series publishing.SeriesID) (number int, over bool, err error) {
	return number, over, tx.QueryRow(ctx, seriesNumber, series).Scan(&number, &over)
}

// around returns the lowest and the highest id that differ from the given id only in the occurrence
// number.
func around(of uuid.UUID) (low, high uuid.UUID) {
	low, high = of, of
	binary.BigEndian.PutUint32(low[12:], 0)
	binary.BigEndian.PutUint32(high[12:], ^uint32(0))
	return low, high
}

// numberOf returns the occurrence number that is encoded in an id. first is the id that the same
// object has in the first occurrence.
func numberOf(of, first uuid.UUID) int {
	return int(binary.BigEndian.Uint32(of[12:]) ^ binary.BigEndian.Uint32(first[12:]))
}

// maxNumber is the largest occurrence number allowed in an id. It is enough for more than 2000
// years of daily posts.
const maxNumber = 1 << 20

// Materialize inserts a projected occurrence and returns its group and series. named is the id of
// the occurrence's root. If isGroup is set, named is the id of the occurrence's group instead.
// Materialize returns pgx.ErrNoRows if there is no such occurrence, or if the occurrence already
// has a row.
func Materialize(
	ctx context.Context, tx *db.Tx, named uuid.UUID, isGroup bool,
) (publishing.GroupID, publishing.SeriesID, error) {
	by := seriesByID
	if isGroup {
		by = seriesByTemplate
	}
	low, high := around(named)
	row, err := lockSeries(ctx, tx, by, low, high)
	if err != nil {
		return publishing.GroupID{}, publishing.SeriesID{}, err
	}
	number := numberOf(named, row.ID.UUID())
	if isGroup {
		number = numberOf(named, row.Template.UUID())
	}
	s, err := row.series()
	if err != nil || row.Stopped || number <= max(s.Number, s.Base) || number > maxNumber {
		return row.Template, row.ID, pgx.ErrNoRows // with an unknown zone, no occurrence follows
	}
	if !s.Has(number) || !s.At(number).After(row.Now) {
		return row.Template, row.ID, pgx.ErrNoRows
	}
	for _, o := range row.stored {
		if o.Number == number {
			return row.Template, row.ID, pgx.ErrNoRows // the occurrence was deleted
		}
	}
	_, err = writeOccurrence(ctx, tx, row, number, s.At(number))
	return publishing.Occurrence(row.Template, number), row.ID, err
}
