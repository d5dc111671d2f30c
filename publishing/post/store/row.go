package store

import (
	_ "embed"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// postRow is a row of the post table. It has the fields of publishing.Post, tagged with their
// columns. Fields without a column are read from other tables. Because a postRow is converted to a
// publishing.Post, both types must have the same fields.
type postRow struct {
	ID             publishing.PostID               `db:"id"`
	Org            tenancy.OrgID                   `db:"org_id"`
	Group          publishing.GroupID              `db:"group_id"`
	Channel        publishing.ChannelID            `db:"channel_id"`
	State          publishing.State                `db:"state"`
	Due            *time.Time                      `db:"due"`
	PublishDate    time.Time                       `db:"publish_date"`
	After          publishing.PostID               `db:"after_post"`
	Delay          time.Duration                   `db:"delay" sql:"p.delay_minutes * interval '1 minute'"`
	Revision       int                             `db:"revision"`
	Settings       json.RawMessage                 `db:"settings"`
	CreationMethod publishing.CreationMethod       `db:"creation_method"`
	Tags           []publishing.TagID              `db:"tags"`
	ReleaseID      *string                         `db:"release_id"`
	ReleaseURL     *string                         `db:"release_url"`
	Error          *string                         `db:"error"`
	ErrorCode      *string                         `db:"error_code"`
	OutcomeUnknown bool                            `db:"maybe_sent"`
	Series         publishing.SeriesID             `db:"series_id"`
	Occurrence     int                             `db:"occurrence" sql:"coalesce(p.occurrence, 0)"`
	Interval       int                             `db:"interval_days" sql:"coalesce(p.interval_days, 0)"`
	Projected      *publishing.ProjectedOccurrence `db:"-"`
	CreatedAt      time.Time                       `db:"created_at"`
	UpdatedAt      time.Time                       `db:"updated_at"`
	Parts          []publishing.Part               `db:"-"`
}

// Columns of postRow. The settings of followers are not read, because they equal the root's.
var (
	rootColumns     = db.Columns[postRow]("p")
	followerColumns = strings.Replace(rootColumns, "p.settings", "'{}'::jsonb as settings", 1)
)

func scanPost(row pgx.CollectableRow) (publishing.Post, error) {
	r, err := pgx.RowToStructByName[postRow](row)
	return publishing.Post(r), err
}

// templateRow holds the fields that a projected occurrence copies from its template's root, except
// for the settings.
type templateRow struct {
	CreationMethod publishing.CreationMethod `db:"creation_method"`
	Tags           []publishing.TagID        `db:"tags"`
}

func (r templateRow) post() publishing.Post {
	return publishing.Post{CreationMethod: r.CreationMethod, Tags: r.Tags}
}

// postReset resets the columns of a post that is rescheduled or edited. It clears everything that
// earlier claims and their outcomes have stored. It does not reset republish and maybe_sent,
// because each statement sets them differently.
const postReset = `nominal_due = null, attempt = 0, reaps = 0, failing_since = null, not_before = null, phase = null,
  claim_token = null, claim_round = null, claim_holder = null, claim_until = null, committing_at = null,
  call_ended = false, looks = 0, release_id = null, release_url = null, error = null, error_code = null,
  outcome_unknown = false, updated_at = now()`

//go:embed sql/insert_posts.sql
var insertPosts string

// queuePosts queues the statement that inserts posts without their parts. For the parts, see
// queueParts.
func queuePosts(tx *db.Tx, b *pgx.Batch, posts []NewPost) {
	n := len(posts)
	ids, groups, channels := make([][16]byte, n), make([][16]byte, n), make([][16]byte, n)
	states, settings, methods, tags := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	due, dates, delays := make([]*time.Time, n), make([]*time.Time, n), make([]int, n)
	after, series := make([]pgtype.UUID, n), make([]pgtype.UUID, n)
	occurrences, intervals := make([]*int, n), make([]*int, n)
	for i := range posts {
		p := &posts[i]
		ids[i], groups[i], channels[i] = p.ID.UUID(), p.Group.UUID(), p.Channel.UUID()
		after[i] = pgtype.UUID{Bytes: p.After.UUID(), Valid: !p.After.IsZero()}
		states[i], settings[i], methods[i] = string(p.State), string(p.Settings), string(p.CreationMethod)
		tags[i] = uuidArray(p.Tags)
		due[i], dates[i], delays[i] = p.Due, p.publishDate(), int(p.Delay.Minutes())
		if !p.Series.IsZero() {
			series[i] = pgtype.UUID{Bytes: p.Series.UUID(), Valid: true}
			occurrences[i], intervals[i] = &p.Occurrence, &p.Interval
		}
	}
	b.Queue(insertPosts, tx.Org, ids, groups, channels, states, due, dates, after, delays, tenancy.Shard(tx.Org),
		settings, methods, series, occurrences, intervals, tags)
}

// uuidArray returns ids in the text form of uuid[], because an array of arrays cannot hold lists of
// different lengths.
func uuidArray[T any](ids []id.ID[T]) string {
	words := make([]string, len(ids))
	for i, v := range ids {
		words[i] = v.String()
	}
	return "{" + strings.Join(words, ",") + "}"
}

// postRewrite replaces the content of a post that the caller has locked. It increments republish,
// because publications with the current number belong to the old content.
const postRewrite = `-- publishing.PostRewrite
update post set state = $2, publish_date = coalesce($4, now()), settings = $5, creation_method = $6,
  tags = $7,
  due = case when $2 = 'DRAFT' then coalesce($3::timestamptz, now()) else greatest($3::timestamptz, now()) end,
  revision = revision + 1, republish = republish + 1, maybe_sent = false, ` + postReset + `
where id = $1`

func queueRewrite(b *pgx.Batch, root NewPost) {
	b.Queue(postRewrite, root.ID, root.State, root.Due, root.publishDate(), root.Settings, root.CreationMethod,
		db.UUIDs(root.Tags))
}
