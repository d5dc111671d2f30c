package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"crier/publishing"
	"crier/tenancy"
)

// Rows are written by one statement for each table, in the order of the posts.

//go:embed sql/insert_posts.sql
var insertPosts string

const partInsert = `-- publishing.PartInsert
insert into part (org_id, id, post_id, position, content, html)
select $1, u.* from unnest($2::uuid[], $3::uuid[], $4::integer[], $5::text[], $6::boolean[]) u`

const attachmentInsert = `-- publishing.AttachmentInsert
insert into attachment (org_id, part_id, position, media_id, alt)
select $1, u.* from unnest($2::uuid[], $3::integer[], $4::uuid[], $5::text[]) u`

const eventInsert = `-- publishing.EventInsert
insert into post_event (org_id, post_id, event, by, node) values ($1, $2, $3, $4, nullif($5, ''))`

const eventsWritten = `-- publishing.EventsWritten
insert into post_event (org_id, post_id, event, by, node) select $1, u.post, 'written', u.by, nullif($4, '') from unnest($2::uuid[], $3::text[]) u(post, by)`

const eventMoved = `-- publishing.EventMoved
insert into post_event (org_id, post_id, event, by, node, reason)
select $1, $2, 'moved', $3, nullif($6, ''), 'from ' || to_char($4::timestamptz at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') || ' to ' || to_char(coalesce($5::timestamptz, now()) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
where $4::timestamptz <> coalesce($5::timestamptz, now())`

// NewPost is a post to be written. A Due that is past or nil means the database's now, except for a follower, which waits; a zero PublishDate means now as well.
type NewPost struct {
	publishing.Post
	By string // who wrote it, for the timeline
}

// queuePosts writes posts with their parts, and who wrote the first of each group. Those of one group belong together.
func (t *Tx) queuePosts(b *pgx.Batch, posts []NewPost) {
	t.queueHidden(b, posts)
	var roots [][16]byte
	var by []string
	for _, p := range posts {
		if p.After.IsZero() {
			roots, by = append(roots, p.ID.UUID()), append(by, p.By)
		}
	}
	if len(roots) > 0 {
		b.Queue(eventsWritten, t.org, roots, by, t.node)
	}
}

// queueHidden writes posts that nobody wrote.
func (t *Tx) queueHidden(b *pgx.Batch, posts []NewPost) {
	n := len(posts)
	ids, groups, channels, after := make([][16]byte, n), make([][16]byte, n), make([][16]byte, n), make([]pgtype.UUID, n)
	states, settings, methods := make([]string, n), make([]string, n), make([]string, n)
	due, dates, delays := make([]*time.Time, n), make([]*time.Time, n), make([]int, n)
	for i, p := range posts {
		ids[i], groups[i], channels[i] = p.ID.UUID(), p.Group.UUID(), p.Channel.UUID()
		after[i] = pgtype.UUID{Bytes: p.After.UUID(), Valid: !p.After.IsZero()}
		states[i], settings[i], methods[i] = string(p.State), string(p.Settings), string(p.CreationMethod)
		due[i], delays[i] = p.Due, int(p.Delay.Minutes())
		if !p.PublishDate.IsZero() {
			dates[i] = &p.PublishDate
		}
	}
	b.Queue(insertPosts, t.org, ids, groups, channels, states, due, dates, after, delays, tenancy.Shard(t.org), settings, methods)
	t.queueParts(b, posts)
}

func (t *Tx) queueParts(b *pgx.Batch, posts []NewPost) {
	var parts, of, attached, media [][16]byte
	var positions, places []int
	var contents, alts []string
	var html []bool
	for _, p := range posts {
		for _, part := range p.Parts {
			parts, of, positions = append(parts, part.ID.UUID()), append(of, p.ID.UUID()), append(positions, part.Position)
			contents, html = append(contents, part.Content.Text), append(html, part.Content.HTML)
			for i, m := range part.Media {
				attached, places = append(attached, part.ID.UUID()), append(places, i)
				media, alts = append(media, m.Media.UUID()), append(alts, m.Alt)
			}
		}
	}
	if len(parts) > 0 {
		b.Queue(partInsert, t.org, parts, of, positions, contents, html)
	}
	if len(attached) > 0 {
		b.Queue(attachmentInsert, t.org, attached, places, media, alts)
	}
}

// Tx is one transaction of one organization.
type Tx struct {
	tx    pgx.Tx
	org   tenancy.OrgID
	node  string
	freed bool
}

// Freed tells whether a channel was released, so that the next of its queue may be due.
func (t *Tx) Freed() bool { return t.freed }

func (t *Tx) release(b *pgx.Batch, posts []Standing, keep func(Standing) bool) {
	b.Queue(holdRelease, uuids(idsOf(posts, keep))).Exec(func(tag pgconn.CommandTag) error {
		t.freed = t.freed || tag.RowsAffected() > 0
		return nil
	})
}

// InOrg runs fn in one transaction of the organization; it may be repeated after a deadlock or a lock timeout.
func (s *Store) InOrg(ctx context.Context, org tenancy.OrgID, fn func(*Tx) error) error {
	return s.db.InOrg(ctx, org.UUID(), func(tx pgx.Tx) error { return fn(&Tx{tx: tx, org: org, node: s.node}) })
}

// Insert writes posts with their parts in one round trip.
func (t *Tx) Insert(ctx context.Context, posts []NewPost) error {
	b := &pgx.Batch{}
	t.queuePosts(b, posts)
	return t.tx.SendBatch(ctx, b).Close()
}

// Standing is what a by-hand move must know of each post of a group.
type Standing struct {
	ID             publishing.PostID
	Channel        publishing.ChannelID
	State          publishing.State
	OutcomeUnknown bool
	Published      bool // a part of the current round is out
	After          publishing.PostID
	PublishDate    time.Time
	Series         publishing.SeriesID
	Occurrence     int
}

const groupLock = `-- publishing.GroupLock
select 1 from post p where p.group_id = $1 and p.deleted_at is null order by p.id for no key update of p`

// A statement of its own, since what the lock waited for may have sent a part: only a later snapshot sees it. A call that began and was never answered counts as unknown.
const groupStanding = `-- publishing.GroupStanding
select p.id, p.channel_id, p.state, p.maybe_sent or coalesce(x.begun, false), coalesce(x.out, false), p.after_post, p.publish_date, p.series_id, coalesce(p.occurrence, 0)
from post p left join lateral (
  select bool_or(x.phase = 'done') as out, bool_or(x.phase = 'committing') as begun from publication x where x.org_id = p.org_id and x.post_id = p.id and x.number = p.republish) x on true
where p.group_id = $1 and p.deleted_at is null order by p.id`

// LockGroup locks the living posts of a group by id and tells how they stand; none means that there is no such group.
func (t *Tx) LockGroup(ctx context.Context, group publishing.GroupID) ([]Standing, error) {
	var out []Standing
	b := &pgx.Batch{}
	b.Queue(groupLock, group)
	b.Queue(groupStanding, group).Query(into(&out, pgx.RowToStructByPos[Standing]))
	return out, t.tx.SendBatch(ctx, b).Close()
}

const groupOfPost = `-- publishing.GroupOfPost
select group_id from post where id = $1 and deleted_at is null`

const groupOfPart = `-- publishing.GroupOfPart
select p.group_id from part a join post p on p.org_id = a.org_id and p.id = a.post_id where a.id = $1 and p.deleted_at is null`

// GroupOf finds the group of a living post, or pgx.ErrNoRows.
func (t *Tx) GroupOf(ctx context.Context, post publishing.PostID) (g publishing.GroupID, err error) {
	return g, t.tx.QueryRow(ctx, groupOfPost, post).Scan(&g)
}

// GroupOfPart finds the group of a part of a living post, or pgx.ErrNoRows.
func (t *Tx) GroupOfPart(ctx context.Context, part publishing.PartID) (g publishing.GroupID, err error) {
	return g, t.tx.QueryRow(ctx, groupOfPart, part).Scan(&g)
}

// The hold that a post had on its channel while backing off goes with it; a claimed post keeps it to its end.
const holdRelease = `-- publishing.HoldRelease
update channel_queue set busy_post = null where busy_post = any($1)`

const postDelete = `-- publishing.PostDelete
update post set deleted_at = now(), updated_at = now() where id = any($1)`

// Delete removes posts from the service. Claimed ones end their part in flight; the others release their channel.
func (t *Tx) Delete(ctx context.Context, posts []Standing) error {
	b := &pgx.Batch{}
	b.Queue(postDelete, uuids(idsOf(posts, every)))
	t.release(b, posts, func(s Standing) bool { return !s.State.Claimed() })
	return t.tx.SendBatch(ctx, b).Close()
}

func every(Standing) bool { return true }

func dateOf(posts []Standing, post publishing.PostID) (at time.Time) {
	for _, p := range posts {
		if p.ID == post {
			at = p.PublishDate
		}
	}
	return at
}

func idsOf(posts []Standing, keep func(Standing) bool) (out []publishing.PostID) {
	for _, p := range posts {
		if keep(p) {
			out = append(out, p.ID)
		}
	}
	return out
}

//go:embed sql/move_posts.sql
var movePosts string

// Move takes a whole group to DRAFT or QUEUE; followers wait. It returns when the root is due. With keepUnknown,
// posts that may have been sent stay marked as such; else the caller has accepted that they may be published twice.
func (t *Tx) Move(ctx context.Context, posts []Standing, to publishing.State, keepUnknown bool, by string) (*time.Time, error) {
	rows, err := t.tx.Query(ctx, movePosts, uuids(idsOf(posts, every)), to, keepUnknown)
	if err != nil {
		return nil, err
	}
	dues, err := pgx.CollectRows(rows, pgx.RowTo[*time.Time])
	if err != nil {
		return nil, err
	}
	b := &pgx.Batch{}
	t.release(b, posts, every)
	event := publishing.EventScheduled
	if to == publishing.StateDraft {
		event = publishing.EventUnscheduled
	}
	for _, p := range posts {
		if p.After.IsZero() {
			b.Queue(eventInsert, t.org, p.ID, event, by, t.node)
		}
	}
	return earliest(dues), t.tx.SendBatch(ctx, b).Close()
}

func earliest(times []*time.Time) (first *time.Time) {
	for _, at := range times {
		if at != nil && (first == nil || at.Before(*first)) {
			first = at
		}
	}
	return first
}

const postRewrite = `-- publishing.PostRewrite
update post set state = $2, due = case when $2 = 'DRAFT' then coalesce($3::timestamptz, now()) else greatest($3::timestamptz, now()) end, publish_date = coalesce($4, now()), settings = $5, creation_method = $6, revision = revision + 1,
  republish = republish + 1, maybe_sent = false, nominal_due = null, attempt = 0, reaps = 0, failing_since = null, not_before = null, phase = null, claim_token = null, claim_round = null, claim_holder = null, claim_until = null,
  committing_at = null, call_ended = false, looks = 0, release_id = null, release_url = null, error = null, error_code = null,
  outcome_unknown = false, updated_at = now()
where id = $1`

const followersDrop = `-- publishing.FollowersDrop
update post set deleted_at = now(), updated_at = now(), after_post = null, due = coalesce(due, publish_date), state = case when state = 'WAITING' then 'DRAFT' else state end where group_id = $1 and id <> $2 and deleted_at is null`

const partsMoveAway = `-- publishing.PartsDrop
delete from part where post_id in (select id from post where group_id = $1)`

// Rewrite replaces what a group says: the root keeps its id, its parts and followers are written anew. Part ids that are sent again are kept.
func (t *Tx) Rewrite(ctx context.Context, group publishing.GroupID, old []Standing, posts []NewPost) error {
	root := posts[0]
	b := &pgx.Batch{}
	t.release(b, old, every)
	b.Queue(followersDrop, group, root.ID)
	b.Queue(partsMoveAway, group)
	var date *time.Time
	if !root.PublishDate.IsZero() {
		date = &root.PublishDate
	}
	b.Queue(postRewrite, root.ID, root.State, root.Due, date, root.Settings, root.CreationMethod)
	t.queueParts(b, posts[:1])
	b.Queue(eventInsert, t.org, root.ID, publishing.EventEdited, root.By, t.node)
	b.Queue(eventMoved, t.org, root.ID, root.By, dateOf(old, root.ID), date, t.node)
	if len(posts) > 1 {
		t.queuePosts(b, posts[1:])
	}
	return t.tx.SendBatch(ctx, b).Close()
}
