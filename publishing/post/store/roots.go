package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// ofCustomer is the condition that a post's channel belongs to a customer. The caller must append
// the customer parameter and a closing parenthesis.
const ofCustomer = `exists (
  select from channel c where c.org_id = p.org_id and c.id = p.channel_id and c.customer_id = `

var rootsInRange = `-- publishing.RootsInRange
select ` + rootColumns + `
from post p
where p.after_post is null and p.deleted_at is null and p.publish_date >= $1 and p.publish_date <= $2
  and ($3::uuid is null or ` + ofCustomer + `$3))
order by p.publish_date, p.id limit $4`

// Roots returns the roots whose publish date is in q's range, ordered as described in
// publishing.ListPosts. It includes roots that are not stored yet, and returns at most limit roots.
// If customer is not zero, only that customer's roots are returned.
//
// Roots returns ErrTooMuch if the settings exceed publishing.MaxListedBytes, or if there are limit
// or more series.
func Roots(
	ctx context.Context, d *db.DB, org tenancy.OrgID, q publishing.ListPosts, customer publishing.CustomerID, limit int,
) ([]publishing.Post, error) {
	var rows []publishing.Post
	var series []projectedSeries
	// Series are read first, so that an occurrence stored between the two reads is found twice
	// instead of being missed.
	err := readWithin(ctx, d, org, func(b *pgx.Batch, most *budget) {
		b.Queue(
			findSeriesInRange, q.Start, q.End.UTC(), customer, limit, publishing.ChannelID{},
		).Query(collectProjected(&series))
		b.Queue(rootsInRange, q.Start, q.End, customer, limit).Query(
			db.Into(&rows, within(most, scanPost, settingsBytes)),
		)
	})
	if err != nil {
		return rows, err
	}
	if len(series) == limit {
		return rows, ErrTooMuch
	}
	stored := make(map[publishing.PostID]bool, len(rows))
	for _, p := range rows {
		stored[p.ID] = true
	}
	later := slices.DeleteFunc(occurrencesBetween(series, q.Start, q.End, limit), func(p publishing.Post) bool {
		return stored[p.ID]
	})
	if len(later) == 0 {
		return rows, nil
	}
	rows = append(rows, later...)
	slices.SortFunc(rows, func(a, b publishing.Post) int {
		return cmp.Or(a.PublishDate.Compare(b.PublishDate), strings.Compare(a.ID.String(), b.ID.String()))
	})
	return rows[:min(limit, len(rows))], nil
}

var rootsPage = `-- publishing.RootsPage
select ` + rootColumns + `
from post p
where p.after_post is null and p.deleted_at is null and ($1::uuid is null or ` + ofCustomer + `$1))
order by p.publish_date, p.id offset $2 limit $3`

// rootsCount has a limit, so that it does not read everything an organization has ever posted.
const rootsCount = `-- publishing.RootsCount
select count(*) from (
  select from post p
  where p.after_post is null and p.deleted_at is null and ($1::uuid is null or ` + ofCustomer + `$1))
  limit $2) counted`

// RootPage returns one page of stored roots and the total number of roots. Roots more than
// publishing.CountAhead beyond the end of the page are not counted. If customer is not zero, only
// that customer's roots are returned and counted. RootPage returns ErrTooMuch if the settings on
// the page exceed publishing.MaxListedBytes.
func RootPage(
	ctx context.Context, d *db.DB, org tenancy.OrgID, page publishing.Page, customer publishing.CustomerID,
) (out []publishing.Post, total int, err error) {
	before := int64(page.Number) * int64(page.Limit)
	end := before + int64(page.Limit)
	err = readWithin(ctx, d, org, func(b *pgx.Batch, most *budget) {
		b.Queue(rootsPage, customer, before, page.Limit).Query(db.Into(&out, within(most, scanPost, settingsBytes)))
		b.Queue(rootsCount, customer, end+publishing.CountAhead).QueryRow(func(row pgx.Row) error {
			return row.Scan(&total)
		})
	})
	return out, total, err
}

var rootByID = `-- publishing.RootByID
select ` + rootColumns + `
from post p
where p.after_post is null and p.deleted_at is null
  and p.group_id = (select q.group_id from post q where q.id = $1 and q.deleted_at is null)`

// Root returns the root of the group that contains a stored post, or nothing if there is no such
// post. It returns pg.ErrOrgBusy or any Postgres error.
func Root(
	ctx context.Context, d *db.DB, org tenancy.OrgID, post publishing.PostID,
) (out []publishing.Post, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(rootByID, post).Query(db.Into(&out, scanPost)) })
	return out, err
}

// ErrTooMuch means that the result of a read would exceed publishing.MaxListedBytes, or that there
// are too many series.
var ErrTooMuch = errors.New("the list contains too many bytes")

// budget limits how many more bytes of user content a read may return.
type budget struct {
	left int
	stop context.CancelFunc
}

// take deducts a number of bytes from the budget. If the budget is exceeded, take returns
// ErrTooMuch and cancels the read. Otherwise, Postgres would send the remaining rows.
func (b *budget) take(bytes int) error {
	b.left -= bytes
	if b.left < 0 {
		b.stop()
		return ErrTooMuch
	}
	return nil
}

// within returns a scan function that deducts each row's size from a budget.
func within[T any](b *budget, scan pgx.RowToFunc[T], bytes func(T) int) pgx.RowToFunc[T] {
	return func(row pgx.CollectableRow) (T, error) {
		x, err := scan(row)
		if err != nil {
			return x, err
		}
		return x, b.take(bytes(x))
	}
}

func settingsBytes(p publishing.Post) int { return len(p.Settings) }

// readWithin executes a batch of queries for one organization. The batch has a budget of
// publishing.MaxListedBytes. If the results exceed the budget, readWithin returns ErrTooMuch.
func readWithin(ctx context.Context, d *db.DB, org tenancy.OrgID, queue func(*pgx.Batch, *budget)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var most *budget
	err := d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		most = &budget{left: publishing.MaxListedBytes, stop: stop}
		queue(b, most)
	})
	if most != nil && most.left < 0 {
		return ErrTooMuch
	}
	return err
}
