package db

import (
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

// MediumRow converts to publishing.Medium, so the two must have the same fields in the same order.
type MediumRow struct {
	ID           publishing.MediaID `db:"id"`
	Org          tenancy.OrgID      `db:"org_id"`
	Key          string             `db:"key"`
	Blob         string             `db:"blob"`
	Name         string             `db:"name"`
	Ext          string             `db:"ext"`
	ContentType  string             `db:"content_type"`
	Size         int64              `db:"size"`
	Stored       int64              `db:"stored"`
	Edits        []byte             `db:"edits"`
	Width        int                `db:"width"`
	Height       int                `db:"height"`
	DurationMS   int64              `db:"duration_ms"`
	OriginalName string             `db:"original_name"`
	Alt          string             `db:"alt_text"`
	CreatedAt    time.Time          `db:"created_at"`
}

var MediaColumns = Columns[MediumRow]("m")

func (r MediumRow) Medium() publishing.Medium { return publishing.Medium(r) }

func ScanMedium(row pgx.CollectableRow) (publishing.Medium, error) {
	r, err := pgx.RowToStructByName[MediumRow](row)
	return r.Medium(), err
}

type AttachmentRow struct {
	Part    publishing.PartID `db:"part_id"`
	PostAlt string            `db:"alt"`
	MediumRow
}

var AttachmentColumns = "t.part_id, t.alt, " + MediaColumns

var MediaFind = `-- publishing.MediaFind
select ` + MediaColumns + ` from media m where m.deleted_at is null and (m.id = any($1) or m.key = any($2))`

// mediaGone must run after AttachmentInsert, whose foreign key locks the files.
const mediaGone = `-- publishing.MediaGone
select count(*) from media where id = any ($1::uuid[]) and deleted_at is not null`

// RequireMedia queues a check that none of the given files has been deleted. If one has been
// deleted, the batch fails with Invalid.
func RequireMedia(b *pgx.Batch, media [][16]byte) {
	b.Queue(mediaGone, media).QueryRow(func(row pgx.Row) error {
		gone := 0
		if err := row.Scan(&gone); err != nil || gone == 0 {
			return err
		}
		return fault.New(fault.Invalid, "publishing.CreatePosts", "A file of the post has been deleted.")
	})
}

// Unattached is the SQL condition that media item m is not attached to any part.
const Unattached = `not exists (select from attachment a where a.org_id = m.org_id and a.media_id = m.id)`
