package store

import (
	"bytes"
	"context"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
)

// postDigest is the SHA-256 hash of everything that the post p publishes: its channel, delay,
// settings, texts, files and alternative texts, in order. Part ids, the date and the tags are not
// included. load_work.sql has a copy of this expression.
const postDigest = `sha256(convert_to(jsonb_build_array(p.channel_id, p.delay_minutes, p.settings, (
  select jsonb_agg(jsonb_build_array(a.content, a.html, (
    select jsonb_agg(jsonb_build_array(t.media_id, t.alt) order by t.position) from attachment t
    where t.part_id = any (array[a.id]) and (t.org_id = a.org_id) is true)) order by a.position)
  from part a where a.post_id = any (array[p.id]) and (a.org_id = p.org_id) is true))::text, 'UTF8'))`

// postPlace is the position of post p's first part in the group.
const postPlace = `(select min(a.position) from part a
  where a.post_id = any (array[p.id]) and (a.org_id = p.org_id) is true)`

// Content holds the digests of the posts in a group, in order.
type Content []PostContent

// PostContent holds the digest of a post's current content and the digest of its approved content.
// Approved is nil if the post needs no approval. It is empty if the post needs an approval but has
// none.
type PostContent struct {
	Digest   []byte `db:"digest"`
	Approved []byte `db:"approved"`
}

// NeedsApproval reports whether the group's content must be approved before it is published.
func (c Content) NeedsApproval() bool { return len(c) > 0 && c[0].Approved != nil }

// IsApproved reports whether c equals the approved content recorded in before. before is the
// group's content before a change, and c is its content after the change.
func (c Content) IsApproved(before Content) bool {
	if len(c) != len(before) {
		return false
	}
	for i := range c {
		if !bytes.Equal(c[i].Digest, before[i].Approved) {
			return false
		}
	}
	return true
}

const contentOf = `-- publishing.ContentOf
select ` + postDigest + ` as digest, p.approved from post p
where p.group_id = $1 and p.deleted_at is null order by ` + postPlace

// ContentOf returns a group's content, or any Postgres error.
func ContentOf(ctx context.Context, tx *db.Tx, group publishing.GroupID) (Content, error) {
	rows, err := tx.Query(ctx, contentOf, group)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[PostContent])
}

const contentApprove = `-- publishing.ContentApprove
update post p set approved = ` + postDigest + ` where p.group_id = $1 and p.deleted_at is null`

// ApproveContent records that a locked group's current content is approved. It returns any Postgres
// error.
func ApproveContent(ctx context.Context, tx *db.Tx, group publishing.GroupID) error {
	_, err := tx.Exec(ctx, contentApprove, group)
	return err
}

const contentReject = `-- publishing.ContentReject
update post set approved = '\x' where group_id = $1`

// RejectContent records that a locked group needs a new approval, even if its content does not
// change. It returns any Postgres error.
func RejectContent(ctx context.Context, tx *db.Tx, group publishing.GroupID) error {
	_, err := tx.Exec(ctx, contentReject, group)
	return err
}

const contentFree = `-- publishing.ContentFree
update post set approved = null where group_id = $1`

// FreeContent records that a locked group needs no approval. It returns any Postgres error.
func FreeContent(ctx context.Context, tx *db.Tx, group publishing.GroupID) error {
	_, err := tx.Exec(ctx, contentFree, group)
	return err
}

// TemplateMark says whether a series' template needs approval. It also applies to occurrences that
// are written from the template later.
type TemplateMark string

const (
	// TemplateAsked means that approval has been requested. It does not overwrite TemplateHeld or
	// TemplateApproved.
	TemplateAsked TemplateMark = "asked"
	// TemplateHeld means that nobody has approved the content, so new occurrences become drafts.
	TemplateHeld TemplateMark = "held"
	// TemplateApproved means that the content is approved.
	TemplateApproved TemplateMark = "approved"
	// TemplateFree means that the content does not need approval after all. It does not overwrite
	// TemplateApproved.
	TemplateFree TemplateMark = "free"
)

const templateMark = `-- publishing.TemplateMark
with series_of as (
  select s.template, r.group_id from post r join series s on s.org_id = r.org_id and s.id = r.series_id where r.id = $1
)
update post p set approved = case $2 when 'approved' then ` + postDigest + ` when 'free' then null else '\x'::bytea end
from series_of s
where p.group_id = s.template
  and case $2 when 'asked' then p.approved is null when 'free' then p.approved = '\x' else true end and (
  select array_agg(` + postDigest + ` order by ` + postPlace + `) from post p where p.group_id = s.template
) = (
  select array_agg(` + postDigest + ` order by ` + postPlace + `) from post p
  where p.group_id = s.group_id and p.deleted_at is null)`

// MarkTemplate marks the template of the series to which a root belongs. It does nothing if the
// content of the template differs from the content of the root's group, or if the post is not
// repeated. It returns any Postgres error.
func MarkTemplate(ctx context.Context, tx *db.Tx, root publishing.PostID, mark TemplateMark) error {
	_, err := tx.Exec(ctx, templateMark, root, mark)
	return err
}

const templateMarked = `-- publishing.TemplateMarked
select exists (
  select from post r join series s on s.org_id = r.org_id and s.id = r.series_id
  join post t on t.org_id = s.org_id and t.group_id = s.template
  where r.id = $1 and t.approved is not null)`

// TemplateMarked reports whether later occurrences of a root's series need approval. It returns any
// Postgres error.
func TemplateMarked(ctx context.Context, tx *db.Tx, root publishing.PostID) (marked bool, err error) {
	return marked, tx.QueryRow(ctx, templateMarked, root).Scan(&marked)
}

const seriesHeld = `-- publishing.SeriesHeld
select s.stopped_at is not null or exists (
  select from post t where t.org_id = s.org_id and t.group_id = s.template and t.approved = '\x')
from series s where s.id = $1`

// IsSeriesHeld reports whether the series has stopped or its template is waiting for approval.
// While the template waits, later occurrences become drafts instead of being queued. IsSeriesHeld
// returns pgx.ErrNoRows if the series does not exist.
func IsSeriesHeld(ctx context.Context, tx *db.Tx, series publishing.SeriesID) (held bool, err error) {
	return held, tx.QueryRow(ctx, seriesHeld, series).Scan(&held)
}

const templateApproved = `-- publishing.TemplateApproved
select p.id, p.approved from post p where p.group_id = $1`

// templateApprovals returns the digest of the approved content for each post of a template. held is
// true if the template still needs an approval.
func templateApprovals(
	ctx context.Context, tx *db.Tx, template publishing.GroupID,
) (approved map[publishing.PostID][]byte, held bool, err error) {
	rows, err := tx.Query(ctx, templateApproved, template)
	if err != nil {
		return nil, false, err
	}
	approved = map[publishing.PostID][]byte{}
	var post publishing.PostID
	var digest []byte
	_, err = pgx.ForEachRow(rows, []any{&post, &digest}, func() error {
		if digest != nil {
			approved[post] = bytes.Clone(digest)
			held = held || len(digest) == 0
		}
		return nil
	})
	return approved, held, err
}

const approvedCopy = `-- publishing.ApprovedCopy
update post p set approved = u.approved from unnest($1::uuid[], $2::bytea[]) u(id, approved) where p.id = u.id`
