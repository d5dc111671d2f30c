package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// TextOfPost is the text of a post's first part, with the post's channel and date.
type TextOfPost struct {
	Channel publishing.ChannelID `db:"channel_id"`
	Date    time.Time            `db:"publish_date"`
	Text    string               `db:"content"`
}

// SameText looks for posts that have one of several texts. The zero value looks for none.
type SameText struct {
	channels [][16]byte
	texts    []string
	from, to time.Time
}

// Add adds a channel, a text and a range of dates to the search.
func (q *SameText) Add(channel publishing.ChannelID, text string, from, to time.Time) {
	q.channels, q.texts = append(q.channels, channel.UUID()), append(q.texts, text)
	if q.from.IsZero() || from.Before(q.from) {
		q.from = from
	}
	if to.After(q.to) {
		q.to = to
	}
}

const sameText = `-- publishing.SameText
select p.channel_id, p.publish_date, a.content
from post p join part a on a.org_id = p.org_id and a.post_id = p.id and a.position = 0
where p.after_post is null and p.deleted_at is null and p.state <> 'ERROR'
  and p.publish_date > $1 and p.publish_date < $2 and p.channel_id = any($3) and a.content = any($4)
limit 1000`

// Find returns at most 1000 stored posts that have any of the texts, are on any of the channels,
// and are dated within the search's overall range. It leaves out failed posts. It returns
// pg.ErrOrgBusy or any Postgres error.
func (q *SameText) Find(ctx context.Context, d *db.DB, org tenancy.OrgID) (out []TextOfPost, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(sameText, q.from, q.to, q.channels, q.texts).Query(db.Into(&out, pgx.RowToStructByName[TextOfPost]))
	})
	return out, err
}
