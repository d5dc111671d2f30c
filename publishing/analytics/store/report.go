package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

//go:embed sql/report_posts.sql
var reportPosts string

const reportChannels = `-- publishing.ReportChannels
select c.connector, count(*), count(*) filter (where not c.disabled and not c.refresh_needed),
  count(*) filter (where c.disabled), count(*) filter (where c.refresh_needed)
from channel c
where c.deleted_at is null and ($1::uuid is null or c.customer_id = $1)
group by c.connector`

// reportErrors leaves out posts that failed only because an earlier post in their thread failed.
const reportErrors = `-- publishing.ReportErrors
select r.id, p.channel_id, c.name, c.connector, p.error, p.publish_date
from post p
join channel c on c.org_id = p.org_id and c.id = p.channel_id
join post r on r.group_id = any (array[p.group_id]) and (r.org_id = p.org_id) is true and r.after_post is null
  and r.deleted_at is null
where p.publish_date >= $2 and p.publish_date < $3 and p.state = 'ERROR' and p.deleted_at is null
  and p.error_code is distinct from 'predecessor_failed' and ($1::uuid is null or c.customer_id = $1)
order by p.publish_date desc, p.id desc limit $4`

// customerByID finds a customer of the organization.
const customerByID = `-- publishing.CustomerByID
select c.id, c.name from customer c where c.id = $1`

// PostCount counts threads by state, as determined by publishing.Thread.Effective.
type PostCount struct {
	// Day is the index of the day, starting at 0. It is nil for the total over all days. For
	// threads after the last day, it equals the number of days.
	Day *int `db:"day"`
	// Platform is nil for the total over all platforms.
	Platform  *string `db:"connector"`
	Draft     int     `db:"draft"`
	Scheduled int     `db:"scheduled"`
	Published int     `db:"published"`
	Failed    int     `db:"failed"`
}

// PlatformChannels counts the connected channels of a platform.
type PlatformChannels struct {
	Platform string
	publishing.ChannelCounts
}

// ReportData holds the data from which a report is made.
type ReportData struct {
	// Counts holds one element for each day with threads and one for each platform with threads.
	Counts   []PostCount
	Channels []PlatformChannels
	Errors   []publishing.PostFailure
	// Customer is nil if there is no customer with the requested id.
	Customer *publishing.Customer
}

// Report counts the channels and the posts since the start of the first day, and returns the latest
// failures. If customer is not zero, only the customer's channels and their posts are included.
// days holds the start of each day, followed by the end of the last day.
func Report(
	ctx context.Context, d *db.DB, org tenancy.OrgID, customer publishing.CustomerID, days []time.Time,
) (out ReportData, err error) {
	first, last := days[0], days[len(days)-1]
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(reportPosts, customer, days).Query(db.Into(&out.Counts, pgx.RowToStructByName[PostCount]))
		b.Queue(reportChannels, customer).Query(db.Into(&out.Channels, scanPlatformChannels))
		b.Queue(
			reportErrors, customer, first, last, publishing.MaxReportErrors,
		).Query(db.Into(&out.Errors, scanFailure))
		b.Queue(customerByID, customer).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				out.Customer = &publishing.Customer{}
				if err := rows.Scan(&out.Customer.ID, &out.Customer.Name); err != nil {
					return err
				}
			}
			return rows.Err()
		})
	})
	return out, err
}

func scanPlatformChannels(row pgx.CollectableRow) (p PlatformChannels, err error) {
	return p, row.Scan(&p.Platform, &p.Total, &p.Active, &p.Disabled, &p.RefreshNeeded)
}

func scanFailure(row pgx.CollectableRow) (f publishing.PostFailure, err error) {
	return f, row.Scan(&f.Post, &f.Channel, &f.Name, &f.Platform, &f.Message, &f.Date)
}
