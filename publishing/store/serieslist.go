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
	"crier/tenancy"
)

//go:embed sql/find_series_in_range.sql
var findSeriesInRange string

//go:embed sql/find_series_by_id.sql
var findSeriesByID string

// comingSeries is a series whose later occurrences are listed.
type comingSeries struct {
	publishing.Recurrence
	timezone string
	times    *int
	number   int
	now      time.Time // of the database
	stored   []int     // numbers after the current one that have a row
	post     publishing.Post
	template publishing.GroupID
	current  time.Time
}

// collectComing reads series. One whose zone is unknown here is left out, so that it does not take the others with it.
func collectComing(into *[]comingSeries) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, scanComing)
		*into = (*into)[:0]
		for _, s := range all {
			zone, unknown := tenancy.LoadZone(s.timezone)
			if unknown != nil {
				continue
			}
			s.Zone = zone
			*into = append(*into, s)
		}
		return err
	}
}

func scanComing(row pgx.CollectableRow) (s comingSeries, err error) {
	err = row.Scan(&s.post.Org, &s.post.Series, &s.template, &s.post.Channel, &s.Anchor, &s.timezone, &s.Days,
		&s.Base, &s.Until, &s.times, &s.number, &s.post.CreatedAt, &s.post.CreationMethod, &s.current, &s.now, &s.stored)
	if s.times != nil {
		s.Count = *s.times
	}
	return s, err
}

// next returns the first number after another, and not before an instant, that is still to come and has no row.
func (s comingSeries) next(after int, from time.Time) (number int, at time.Time, ok bool) {
	number = max(after, s.number, s.Base) + 1
	if from = from.Add(-time.Nanosecond); from.Before(s.now) {
		from = s.now
	}
	if !s.At(number).After(from) {
		number = max(number, s.FirstAfter(from))
	}
	for slices.Contains(s.stored, number) {
		number++
	}
	return number, s.At(number), number <= maxNumber && s.Has(number)
}

// occurrence is a later occurrence as a list shows it.
func (s comingSeries) occurrence(number int, at time.Time) publishing.Post {
	p := s.post
	p.ID = publishing.Occurrence(id.FromUUID[publishing.PostTag](p.Series.UUID()), number)
	p.Group = publishing.Occurrence(s.template, number)
	p.State, p.Revision = publishing.StateQueue, 1
	p.Occurrence, p.Interval, p.PublishDate, p.Due, p.UpdatedAt = number, s.Days, at, &at, p.CreatedAt
	p.Projected = &publishing.ProjectedOccurrence{Template: s.template, Next: s.current}
	return p
}

// upcoming is the next occurrence of a series.
type upcoming struct {
	series comingSeries
	number int
	at     time.Time
}

// agenda is a heap (container/heap) of what comes next in each series, the earliest first.
type agenda []*upcoming

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }

// Push adds an upcoming occurrence at the end.
func (a *agenda) Push(x any) {
	if u, ok := x.(*upcoming); ok {
		*a = append(*a, u)
	}
}

// Pop removes the last.
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// occurrencesBetween lists the later occurrences of series from start to end, the earliest first, at most limit.
func occurrencesBetween(all []comingSeries, start, end time.Time, limit int) (out []publishing.Post) {
	var a agenda
	for _, s := range all {
		if number, at, ok := s.next(0, start); ok && !at.After(end) {
			a = append(a, &upcoming{series: s, number: number, at: at})
		}
	}
	heap.Init(&a)
	for len(a) > 0 && len(out) < limit {
		first := a[0]
		out = append(out, first.series.occurrence(first.number, first.at))
		number, at, ok := first.series.next(first.number, start)
		if !ok || at.After(end) {
			heap.Pop(&a)
			continue
		}
		first.number, first.at = number, at
		heap.Fix(&a, 0)
	}
	return out
}

// Coming finds a later occurrence by the id that lists give it; none when there is no such occurrence.
func (s *Store) Coming(ctx context.Context, org tenancy.OrgID, post publishing.PostID) (out []publishing.Post, err error) {
	var all []comingSeries
	low, high := around(post.UUID())
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(findSeriesByID, low, high).Query(collectComing(&all))
	})
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		number := numberOf(post.UUID(), c.post.Series.UUID())
		if number > maxNumber || number <= max(c.number, c.Base) || slices.Contains(c.stored, number) {
			continue
		}
		if !c.Has(number) || !c.At(number).After(c.now) {
			continue
		}
		out = append(out, c.occurrence(number, c.At(number)))
	}
	return out, nil
}
