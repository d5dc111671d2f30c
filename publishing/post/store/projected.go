package store

import (
	"container/heap"
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/recurrence"
	"crier/tenancy"
)

//go:embed sql/find_series_in_range.sql
var findSeriesInRangeFile string

//go:embed sql/find_series_by_id.sql
var findSeriesByIDFile string

var (
	findSeriesInRange = db.Expand(findSeriesInRangeFile, "projectedColumns", projectedColumns)
	findSeriesByID    = db.Expand(findSeriesByIDFile, "projectedColumns", projectedColumns)
)

// projectedRow is a series together with the data shared by all its projected occurrences.
type projectedRow struct {
	seriesRow
	templateRow
	Org       tenancy.OrgID `db:"org_id"`
	CreatedAt time.Time     `db:"created_at"`
	// Current is the publish date of the current occurrence.
	Current time.Time `db:"current"`
	// Now is the database's time.
	Now time.Time `db:"now"`
	// Stored holds the numbers of the later occurrences that already have a row.
	Stored []int `db:"stored"`
}

var projectedColumns = db.Columns[seriesRow]("s") + ", " + db.Columns[templateRow]("t")

type projectedSeries struct {
	projectedRow
	recurrence.Rule
}

// collectProjected reads series into out. It skips series with an unknown time zone, so that the
// other series can still be listed.
func collectProjected(out *[]projectedSeries) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[projectedRow])
		*out = nil
		for _, r := range all {
			zone, unknown := tenancy.LoadZone(r.Timezone)
			if unknown != nil {
				continue
			}
			*out = append(*out, projectedSeries{projectedRow: r, Rule: r.rule(zone)})
		}
		return err
	}
}

// next returns the first projected occurrence that has a number greater than after and is due at or
// after from. Projected occurrences are in the future and have no row. If there is no such
// occurrence, ok is false.
func (s projectedSeries) next(after int, from time.Time) (number int, at time.Time, ok bool) {
	number = max(after, s.Number, s.Rule.Base) + 1
	from = from.Add(-time.Nanosecond)
	if from.Before(s.Now) {
		from = s.Now
	}
	if !s.At(number).After(from) {
		number = max(number, s.FirstAfter(from))
	}
	for slices.Contains(s.Stored, number) {
		number++
	}
	return number, s.At(number), number <= maxNumber && s.Has(number)
}

// occurrence returns a projected occurrence without its settings and parts. Settings and parts are
// copied from the template, which is in ThreadData.
func (s projectedSeries) occurrence(number int, at time.Time) publishing.Post {
	p := s.post()
	p.ID = publishing.Occurrence(id.FromUUID[publishing.PostTag](s.ID.UUID()), number)
	p.Group = publishing.Occurrence(s.Template, number)
	p.Org, p.Channel, p.Series = s.Org, s.Channel, s.ID
	p.State, p.Revision = publishing.StateQueue, 1
	p.Occurrence, p.Interval, p.PublishDate, p.Due = number, s.seriesRow.Days, at, &at
	p.CreatedAt, p.UpdatedAt = s.CreatedAt, s.CreatedAt
	p.Projected = &publishing.ProjectedOccurrence{Template: s.Template, Next: s.Current}
	return p
}

type upcoming struct {
	series projectedSeries
	number int
	at     time.Time
}

// upcomingHeap is a heap (see container/heap) that holds the next projected occurrence of each
// series, earliest first.
type upcomingHeap []*upcoming

func (h upcomingHeap) Len() int { return len(h) }

func (h upcomingHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }

func (h upcomingHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is required by heap.Interface, but is never called.
func (h *upcomingHeap) Push(x any) {
	if u, ok := x.(*upcoming); ok {
		*h = append(*h, u)
	}
}

// Pop is called by heap.Pop, which has already moved the earliest occurrence to the end.
func (h *upcomingHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// occurrencesBetween returns the projected occurrences from start to end, earliest first. It
// returns at most limit occurrences.
func occurrencesBetween(series []projectedSeries, start, end time.Time, limit int) (out []publishing.Post) {
	var h upcomingHeap
	for _, s := range series {
		if number, at, ok := s.next(0, start); ok && !at.After(end) {
			h = append(h, &upcoming{series: s, number: number, at: at})
		}
	}
	heap.Init(&h)
	for len(h) > 0 && len(out) < limit {
		first := h[0]
		out = append(out, first.series.occurrence(first.number, first.at))
		number, at, ok := first.series.next(first.number, start)
		if !ok || at.After(end) {
			heap.Pop(&h)
			continue
		}
		first.number, first.at = number, at
		heap.Fix(&h, 0)
	}
	return out
}

// Projected returns the projected occurrence whose root has the given id. It returns nothing if
// there is no such occurrence, if the occurrence is already stored, or if the series has an unknown
// time zone. It returns pg.ErrOrgBusy or any Postgres error.
func Projected(
	ctx context.Context, d *db.DB, org tenancy.OrgID, post publishing.PostID,
) (out []publishing.Post, err error) {
	var all []projectedSeries
	low, high := around(post.UUID())
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(findSeriesByID, low, high).Query(collectProjected(&all))
	})
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		number := numberOf(post.UUID(), c.ID.UUID())
		if number > maxNumber || number <= max(c.Number, c.Rule.Base) || slices.Contains(c.Stored, number) {
			continue
		}
		if !c.Has(number) || !c.At(number).After(c.Now) {
			continue
		}
		out = append(out, c.occurrence(number, c.At(number)))
	}
	return out, nil
}
