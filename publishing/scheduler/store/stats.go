package store

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
)

//go:embed sql/count_queue.sql
var countQueue string

const countClaimed = `-- publishing.CountClaimed
select count(*) filter (where p.state = 'PUBLISHING'), count(*) filter (where p.state = 'UNKNOWN')
from post p join channel c on c.org_id = p.org_id and c.id = p.channel_id
where p.state in ('PUBLISHING', 'UNKNOWN') and ($1 = '' or c.connector = $1)`

const nextDue = `-- publishing.NextDue
select min(f.due) from generate_series(0, 255) s(shard) cross join lateral (
  select p.due from post p
  where p.state = 'QUEUE' and p.deleted_at is null and p.shard = s.shard and p.due > now()
  order by p.due limit 1) f`

// QueueStats counts all organizations' posts that are due or being published. If connector is not
// "", QueueStats counts only the posts on that connector's channels, and does not determine when
// the next post is due. If QueueStats returns a Postgres error, the numbers are incomplete.
func QueueStats(ctx context.Context, d *db.DB, connector string) (f publishing.QueueStats, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(countQueue, connector, publishing.OverdueAfter.Milliseconds()).QueryRow(func(row pgx.Row) error {
			return row.Scan(&f.Due, &f.Overdue, &f.Oldest, &f.Waiting, &f.Held)
		})
		b.Queue(countClaimed, connector).QueryRow(func(row pgx.Row) error {
			return row.Scan(&f.Publishing, &f.Unknown)
		})
		if connector == "" {
			b.Queue(nextDue).QueryRow(func(row pgx.Row) error { return row.Scan(&f.Next) })
		}
	})
	return f, err
}
