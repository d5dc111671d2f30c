// Package store reads and writes posts and series. Only the parent package imports it.
package store

import (
	"context"
	_ "embed"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
)

// NewPost is a post to be written. If PublishDate is zero, the publish date is the database's
// current time. If Due is nil or in the past, a queued post is due immediately. A follower has no
// Due.
type NewPost struct {
	publishing.Post
	// By identifies the person or API key that wrote the post, as shown in the timeline.
	By string
}

// publishDate returns the publish date, or nil for the database's current time.
func (p *NewPost) publishDate() *time.Time {
	if p.PublishDate.IsZero() {
		return nil
	}
	return &p.PublishDate
}

// Insert inserts posts with their parts, and one event for each root. It deletes the slot holds at
// the posts' times. All of this takes one round trip. A group's posts must be adjacent, with the
// root first. The channels must exist; see HoldChannels.
//
// Insert returns Invalid if a medium has been deleted. It also returns any Postgres error, for
// example a unique violation if an id already exists, or a foreign key violation if a channel or
// medium has no row.
func Insert(ctx context.Context, tx *db.Tx, posts []NewPost) error {
	b := &pgx.Batch{}
	queueWritten(tx, b, posts)
	queueHoldsRelease(tx, b, posts)
	return tx.SendBatch(ctx, b).Close()
}

const eventsWritten = `-- publishing.EventsWritten
insert into post_event (org_id, post_id, event, by, node)
select $1, u.post, 'written', u.by, nullif($4, '') from unnest($2::uuid[], $3::text[]) u(post, by)`

// queueWritten queues the statements that insert posts with their parts, and a "written" event for
// each root.
func queueWritten(tx *db.Tx, b *pgx.Batch, posts []NewPost) {
	queueHidden(tx, b, posts)
	var roots [][16]byte
	var by []string
	for _, p := range posts {
		if p.After.IsZero() {
			roots, by = append(roots, p.ID.UUID()), append(by, p.By)
		}
	}
	if len(roots) > 0 {
		b.Queue(eventsWritten, tx.Org, roots, by, tx.Node)
	}
}

// queueHidden is like queueWritten, but queues no events. A template has no events. For an
// occurrence, the caller adds an event that has a reason.
func queueHidden(tx *db.Tx, b *pgx.Batch, posts []NewPost) {
	queuePosts(tx, b, posts)
	queueParts(tx, b, posts)
}

const partInsert = `-- publishing.PartInsert
insert into part (org_id, id, post_id, position, content, html)
select $1, u.* from unnest($2::uuid[], $3::uuid[], $4::integer[], $5::text[], $6::boolean[]) u`

const attachmentInsert = `-- publishing.AttachmentInsert
insert into attachment (org_id, part_id, position, media_id, alt)
select $1, u.* from unnest($2::uuid[], $3::integer[], $4::uuid[], $5::text[]) u`

func queueParts(tx *db.Tx, b *pgx.Batch, posts []NewPost) {
	var parts, of, attached, media [][16]byte
	var positions, places []int
	var contents, alts []string
	var html []bool
	for _, p := range posts {
		for _, part := range p.Parts {
			parts, of = append(parts, part.ID.UUID()), append(of, p.ID.UUID())
			positions = append(positions, part.Position)
			contents, html = append(contents, part.Content.Text), append(html, part.Content.HTML)
			for i, m := range part.Media {
				attached, places = append(attached, part.ID.UUID()), append(places, i)
				media, alts = append(media, m.Media.UUID()), append(alts, m.Alt)
			}
		}
	}
	if len(parts) > 0 {
		b.Queue(partInsert, tx.Org, parts, of, positions, contents, html)
	}
	if len(attached) > 0 {
		b.Queue(attachmentInsert, tx.Org, attached, places, media, alts)
		db.RequireMedia(b, media)
	}
}

// PostStatus is the status of one post in a locked group. It determines whether users may change
// the post.
type PostStatus struct {
	ID      publishing.PostID    `db:"id"`
	Channel publishing.ChannelID `db:"channel_id"`
	State   publishing.State     `db:"state"`
	// OutcomeUnknown is set if a call made with the current republish number may have reached the
	// platform. Either the call's outcome is unknown, or the call was marked and has no outcome
	// yet.
	OutcomeUnknown bool `db:"outcome_unknown"`
	// Published is set if a part that was sent with the current republish number is on the
	// platform.
	Published bool `db:"published"`
	// After is the post's predecessor, or zero for the root.
	After publishing.PostID `db:"after_post"`
	// PublishDate is the time shown in the calendar.
	PublishDate time.Time `db:"publish_date"`
	// Tags are the root's tags.
	Tags []publishing.TagID `db:"tags"`
	// Series is zero for a post that is not repeated.
	Series publishing.SeriesID `db:"series_id"`
	// Occurrence is the post's number in its series, starting at 0.
	Occurrence int `db:"occurrence"`
}

const groupLock = `-- publishing.GroupLock
select 1 from post p where p.group_id = $1 and p.deleted_at is null order by p.id for no key update of p`

// groupStatus runs as a separate statement after groupLock. The transaction that held the lock
// before may have recorded a call or its outcome, and only a later snapshot shows this.
const groupStatus = `-- publishing.GroupStatus
select p.id, p.channel_id, p.state, p.maybe_sent or coalesce(x.begun, false) as outcome_unknown,
  coalesce(x.out, false) or p.release_id is not null as published, p.after_post, p.publish_date, p.tags, p.series_id,
  coalesce(p.occurrence, 0) as occurrence
from post p left join lateral (
  select bool_or(x.phase = 'done') as out, bool_or(x.phase = 'committing') as begun from publication x
  where x.org_id = p.org_id and x.post_id = p.id and x.number = p.republish) x on true
where p.group_id = $1 and p.deleted_at is null order by p.id`

const groupSize = `-- publishing.GroupSize
select count(*) from post p where p.group_id = $1 and p.deleted_at is null`

// LockGroup locks a group's posts until the transaction ends. It returns the posts ordered by id,
// without deleted posts. If there is no such group, it returns no posts. It also returns none if
// the transaction is narrowed and some of the group's posts are hidden, so that no change covers
// only part of a group.
//
// If another transaction holds a lock on one of the posts for too long, LockGroup returns a
// Postgres error for which pg.IsLocked returns true.
func LockGroup(ctx context.Context, tx *db.Tx, group publishing.GroupID) ([]PostStatus, error) {
	var out []PostStatus
	b := &pgx.Batch{}
	b.Queue(groupLock, group)
	b.Queue(groupStatus, group).Query(db.Into(&out, pgx.RowToStructByName[PostStatus]))
	err := tx.SendBatch(ctx, b).Close()
	if err != nil || len(out) == 0 || !pg.IsNarrowed(ctx) {
		return out, err
	}
	var all int
	err = tx.Whole(ctx, func(ctx context.Context) error { return tx.QueryRow(ctx, groupSize, group).Scan(&all) })
	if all > len(out) {
		return nil, err
	}
	return out, err
}

const groupOfPost = `-- publishing.GroupOfPost
select group_id from post where id = $1 and deleted_at is null`

const groupOfPart = `-- publishing.GroupOfPart
select p.group_id from part a join post p on p.org_id = a.org_id and p.id = a.post_id
where a.id = $1 and p.deleted_at is null`

// GroupOf returns a post's group. It returns pgx.ErrNoRows if the post does not exist or has been
// deleted.
func GroupOf(ctx context.Context, tx *db.Tx, post publishing.PostID) (g publishing.GroupID, err error) {
	return g, tx.QueryRow(ctx, groupOfPost, post).Scan(&g)
}

// GroupOfPart returns a part's group. It returns pgx.ErrNoRows if the part does not exist or its
// post has been deleted.
func GroupOfPart(ctx context.Context, tx *db.Tx, part publishing.PartID) (g publishing.GroupID, err error) {
	return g, tx.QueryRow(ctx, groupOfPart, part).Scan(&g)
}

// holdRelease releases the channels that the given posts hold. Even a post that is backing off
// holds its channel.
const holdRelease = `-- publishing.HoldRelease
update channel_queue set busy_post = null where busy_post = any($1)`

// queueRelease queues a statement that releases the channels held by posts. The function of selects
// the posts to include. If the statement releases a channel, tx.Freed is set.
func queueRelease(tx *db.Tx, b *pgx.Batch, posts []PostStatus, of func(PostStatus) bool) {
	b.Queue(holdRelease, db.UUIDs(idsOf(posts, of))).Exec(func(tag pgconn.CommandTag) error {
		tx.Freed = tx.Freed || tag.RowsAffected() > 0
		return nil
	})
}

func everyPost(PostStatus) bool { return true }

func idsOf(posts []PostStatus, of func(PostStatus) bool) (out []publishing.PostID) {
	for _, p := range posts {
		if of(p) {
			out = append(out, p.ID)
		}
	}
	return out
}

const postDelete = `-- publishing.PostDelete
update post set deleted_at = now(), updated_at = now() where id = any($1)`

// Delete marks locked posts as deleted. A claimed post holds its channel until its sender has
// finished; the other posts release their channels. After a Postgres error, the transaction must be
// rolled back.
func Delete(ctx context.Context, tx *db.Tx, posts []PostStatus) error {
	b := &pgx.Batch{}
	b.Queue(postDelete, db.UUIDs(idsOf(posts, everyPost)))
	queueRelease(tx, b, posts, func(p PostStatus) bool { return !p.State.Claimed() })
	return tx.SendBatch(ctx, b).Close()
}

const eventInsert = `-- publishing.EventInsert
insert into post_event (org_id, post_id, event, by, node) values ($1, $2, $3, $4, nullif($5, ''))`

//go:embed sql/move_posts.sql
var movePostsFile string

var movePosts = db.Expand(movePostsFile, "postReset", postReset)

// Move moves all posts of a locked group to DRAFT or QUEUE. It returns the time at which the root
// is due. If the root is queued, its followers are set to WAITING.
//
// If keepUnknown is set, a post that may have been sent stays marked as such. Otherwise, the mark
// is removed, and the caller accepts that the post may be published twice. If Move returns a
// Postgres error, neither the posts nor their timelines have changed.
func Move(
	ctx context.Context, tx *db.Tx, posts []PostStatus, to publishing.State, keepUnknown bool, by string,
) (*time.Time, error) {
	rows, err := tx.Query(ctx, movePosts, db.UUIDs(idsOf(posts, everyPost)), to, keepUnknown)
	if err != nil {
		return nil, err
	}
	dues, err := pgx.CollectRows(rows, pgx.RowTo[*time.Time])
	if err != nil {
		return nil, err
	}
	event := publishing.EventScheduled
	if to == publishing.StateDraft {
		event = publishing.EventUnscheduled
	}
	b := &pgx.Batch{}
	queueRelease(tx, b, posts, everyPost)
	for _, p := range posts {
		if p.After.IsZero() {
			b.Queue(eventInsert, tx.Org, p.ID, event, by, tx.Node)
		}
	}
	return earliest(dues), tx.SendBatch(ctx, b).Close()
}

func earliest(times []*time.Time) (first *time.Time) {
	for _, at := range times {
		if at != nil && (first == nil || at.Before(*first)) {
			first = at
		}
	}
	return first
}

const followersDrop = `-- publishing.FollowersDrop
update post set deleted_at = now(), updated_at = now(), after_post = null, due = coalesce(due, publish_date),
  state = case when state = 'WAITING' then 'DRAFT' else state end
where group_id = $1 and id <> $2 and deleted_at is null`

const partsDrop = `-- publishing.PartsDrop
delete from part where post_id in (select id from post where group_id = $1)`

const eventMoved = `-- publishing.EventMoved
insert into post_event (org_id, post_id, event, by, node, reason)
select $1, $2, 'moved', $3, nullif($6, ''),
  'from ' || to_char($4::timestamptz at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
  || ' to ' || to_char(coalesce($5::timestamptz, now()) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
where $4::timestamptz <> coalesce($5::timestamptz, now())`

// Rewrite replaces a locked group's content with posts, whose first element is the root. old holds
// the group's current posts. The root keeps its id, but its parts and all followers are deleted and
// written anew. New parts may have the ids of old parts. Rewrite returns the same errors as Insert.
func Rewrite(ctx context.Context, tx *db.Tx, group publishing.GroupID, old []PostStatus, posts []NewPost) error {
	root := posts[0]
	b := &pgx.Batch{}
	queueRelease(tx, b, old, everyPost)
	b.Queue(followersDrop, group, root.ID)
	b.Queue(partsDrop, group)
	queueRewrite(b, root)
	queueParts(tx, b, posts[:1])
	b.Queue(eventInsert, tx.Org, root.ID, publishing.EventEdited, root.By, tx.Node)
	b.Queue(eventMoved, tx.Org, root.ID, root.By, dateOf(old, root.ID), root.publishDate(), tx.Node)
	if len(posts) > 1 {
		queueWritten(tx, b, posts[1:])
	}
	queueHoldsRelease(tx, b, posts[:1])
	return tx.SendBatch(ctx, b).Close()
}

func dateOf(posts []PostStatus, post publishing.PostID) (at time.Time) {
	for _, p := range posts {
		if p.ID == post {
			at = p.PublishDate
		}
	}
	return at
}

const settingsSet = `-- publishing.SettingsSet
update post set settings = $2, revision = revision + 1, updated_at = now()
where group_id = $1 and deleted_at is null and exists (select from post r where r.id = $3 and r.settings = $4::jsonb)`

// SetSettings replaces the settings of all posts in a locked group, and adds an event to the root's
// timeline. A claim that has already read the old settings skips the post. If the root's settings
// have changed since before was read, SetSettings does nothing and returns false.
func SetSettings(
	ctx context.Context, tx *db.Tx, group publishing.GroupID, root publishing.PostID, before,
	settings json.RawMessage, by string,
) (done bool, err error) {
	tag, err := tx.Exec(ctx, settingsSet, group, settings, root, before)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	_, err = tx.Exec(ctx, eventInsert, tx.Org, root, publishing.EventEdited, by, tx.Node)
	return true, err
}

const channelUnended = `-- publishing.ChannelUnended
select p.id, p.state from post p
join channel c on c.org_id = p.org_id and c.id = p.channel_id and c.deleted_at is null
where p.channel_id = $1 and p.deleted_at is null and p.state not in ('PUBLISHED', 'ERROR')
order by p.id for no key update of p`

const channelSeriesEnd = `-- publishing.ChannelSeriesEnd
update series set stopped_at = now(), stopped_for = 'deleted' where channel_id = $1 and stopped_at is null`

// EndOfChannel ends all series of a channel that is being disconnected. It also deletes the
// channel's posts, except published and failed ones. If a post is being sent, its sender finishes
// it later. The caller must have locked the channel.
func EndOfChannel(ctx context.Context, tx *db.Tx, channel publishing.ChannelID) error {
	rows, err := tx.Query(ctx, channelUnended, channel)
	if err != nil {
		return err
	}
	posts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p PostStatus, err error) {
		return p, row.Scan(&p.ID, &p.State)
	})
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, channelSeriesEnd, channel); err != nil {
		return err
	}
	return Delete(ctx, tx, posts)
}
